//! What the shells log, by the server's port: the one subscriber of `tracing` of this process.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use serde_json::{Map, Value, json};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::{Interest, set_global_default};
use tracing::{Event, Metadata, Subscriber};

/// One message, with its fields as `tracing` has them: numbers are numbers.
#[derive(Clone, Debug)]
pub(in crate::conform) struct Message {
    pub(in crate::conform) level: String,
    pub(in crate::conform) component: &'static str,
    pub(in crate::conform) data: Value,
}

/// Targets of `tracing`, and what the specification calls the components.
const COMPONENTS: [(&str, &str); 2] =
    [("cenote::connection", "connection"), ("cenote::topology", "topology")];

static INSTALLED: OnceLock<Result<(), String>> = OnceLock::new();
static HEARD: Mutex<BTreeMap<u16, Vec<Message>>> = Mutex::new(BTreeMap::new());

/// Messages about the server at a port are kept, as long as this is there.
#[derive(Debug)]
pub(in crate::conform) struct Listening(u16);

impl Listening {
    /// # Errors
    ///
    /// When somebody else in this process is subscribed already, or to this port.
    pub(in crate::conform) fn begin(port: u16) -> Result<Self, String> {
        let installed = INSTALLED.get_or_init(|| {
            set_global_default(Ears).map_err(|error| format!("no log can be observed: {error}"))
        });
        installed.clone()?;
        let mut heard = lock(&HEARD);
        if heard.contains_key(&port) {
            return Err("two clients of one server are to be observed at the same time".to_owned());
        }
        heard.insert(port, Vec::new());
        Ok(Self(port))
    }

    /// What was logged until now.
    pub(in crate::conform) fn heard(&self) -> Vec<Message> {
        lock(&HEARD).get(&self.0).cloned().unwrap_or_default()
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        lock(&HEARD).remove(&self.0);
    }
}

fn component(metadata: &Metadata<'_>) -> Option<&'static str> {
    COMPONENTS.iter().find(|(target, _)| *target == metadata.target()).map(|(_, its)| *its)
}

/// What is locked here is whole after every statement.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Ears;

impl Subscriber for Ears {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        // Whether anybody listens changes with every test.
        if component(metadata).is_some() { Interest::sometimes() } else { Interest::never() }
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        component(metadata).is_some() && !lock(&HEARD).is_empty()
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields(Map::new());
        event.record(&mut fields);
        let port = fields.0.get("serverPort").and_then(Value::as_u64);
        let port = port.and_then(|port| u16::try_from(port).ok());
        let level = event.metadata().level().to_string().to_lowercase();
        let Some(component) = component(event.metadata()) else { return };
        let message = Message { level, component, data: Value::Object(fields.0) };
        let mut heard = lock(&HEARD);
        if let Some(messages) = port.and_then(|port| heard.get_mut(&port)) {
            messages.push(message);
        }
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

struct Fields(Map<String, Value>);

impl Fields {
    fn insert(&mut self, field: &Field, value: Value) {
        self.0.insert(field.name().to_owned(), value);
    }
}

impl Visit for Fields {
    fn record_i64(&mut self, field: &Field, value: i64) {
        self.insert(field, json!(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.insert(field, json!(value));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.insert(field, json!(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.insert(field, json!(value));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.insert(field, json!(value));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.insert(field, json!(format!("{value:?}")));
    }
}
