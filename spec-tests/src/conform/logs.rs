//! What the shells log, by the port of the server: the one `tracing` subscriber of the process.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Mutex, OnceLock};

use cenote_conform::LogMessage;
use serde_json::{Map, Value, json};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::{Interest, set_global_default};
use tracing::{Event, Metadata, Subscriber};

use super::lock::lock;

/// The targets in `tracing`, and the components in the specification.
const COMPONENTS: [(&str, &str); 2] =
    [("cenote::connection", "connection"), ("cenote::topology", "topology")];

static INSTALLED: OnceLock<Result<(), String>> = OnceLock::new();
static RECORDED: Mutex<Recorded> = Mutex::new(Recorded::new());

/// What is recorded now.
struct Recorded {
    servers: BTreeMap<u16, Server>,
    /// By their `topologyId`.
    topologies: BTreeMap<String, Topology>,
}

/// The messages of these components about a server.
struct Server {
    components: Vec<String>,
    messages: Vec<LogMessage>,
}

/// Messages of a topology need not name a server. They are those of the first that one of them names.
enum Topology {
    Unassigned(Vec<LogMessage>),
    Of(u16),
}

/// Records messages about the server at a port until it is dropped.
#[derive(Debug)]
pub(in crate::conform) struct LogListener(u16);

impl LogListener {
    /// # Errors
    ///
    /// If the process has another subscriber, or the port another listener.
    pub(in crate::conform) fn start(port: u16, components: Vec<String>) -> Result<Self, String> {
        let installed = INSTALLED.get_or_init(|| {
            set_global_default(LogSubscriber)
                .map_err(|error| format!("no log can be observed: {error}"))
        });
        installed.clone()?;
        let servers = &mut lock(&RECORDED).servers;
        if servers.contains_key(&port) {
            return Err("the log of a server can be observed for one client at a time".to_owned());
        }
        servers.insert(port, Server { components, messages: Vec::new() });
        Ok(Self(port))
    }

    /// All messages so far.
    pub(in crate::conform) fn messages(&self) -> Vec<LogMessage> {
        let recorded = lock(&RECORDED);
        recorded.servers.get(&self.0).map(|server| server.messages.clone()).unwrap_or_default()
    }
}

impl Drop for LogListener {
    fn drop(&mut self) {
        let mut recorded = lock(&RECORDED);
        recorded.servers.remove(&self.0);
        if recorded.servers.is_empty() {
            recorded.topologies.clear();
        }
    }
}

impl Recorded {
    const fn new() -> Self {
        Self { servers: BTreeMap::new(), topologies: BTreeMap::new() }
    }

    fn record(&mut self, message: LogMessage) {
        let port = message.data["serverPort"].as_u64().and_then(|port| u16::try_from(port).ok());
        let Some(id) = message.data["topologyId"].as_str().map(str::to_owned) else {
            return port.map_or((), |port| self.record_of(port, vec![message]));
        };
        let topology = self.topologies.entry(id).or_insert(Topology::Unassigned(Vec::new()));
        let (port, messages) = match (&mut *topology, port) {
            (&mut Topology::Of(port), _) => (port, vec![message]),
            (Topology::Unassigned(messages), None) => return messages.push(message),
            (Topology::Unassigned(messages), Some(port)) => {
                messages.push(message);
                (port, std::mem::take(messages))
            }
        };
        *topology = Topology::Of(port);
        self.record_of(port, messages);
    }

    fn record_of(&mut self, port: u16, messages: Vec<LogMessage>) {
        let Some(Server { components, messages: recorded }) = self.servers.get_mut(&port) else {
            return;
        };
        recorded.extend(messages.into_iter().filter(|it| components.contains(&it.component)));
    }
}

fn component(metadata: &Metadata<'_>) -> Option<&'static str> {
    COMPONENTS.iter().find(|(target, _)| *target == metadata.target()).map(|(_, its)| *its)
}

struct LogSubscriber;

impl Subscriber for LogSubscriber {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        // Which ports have listeners changes with every test.
        if component(metadata).is_some() { Interest::sometimes() } else { Interest::never() }
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        component(metadata).is_some() && !lock(&RECORDED).servers.is_empty()
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields(Map::new());
        event.record(&mut fields);
        let level = event.metadata().level().to_string().to_lowercase();
        let Some(component) = component(event.metadata()) else { return };
        let component = component.to_owned();
        let message = LogMessage { level, component, data: Value::Object(fields.0) };
        lock(&RECORDED).record(message);
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
