//! What the shells log, by the ports of the servers: the one `tracing` subscriber of the process.

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
const COMPONENTS: [(&str, &str); 3] = [
    ("cenote::connection", "connection"),
    ("cenote::topology", "topology"),
    ("cenote::server_selection", "serverSelection"),
];

static INSTALLED: OnceLock<Result<(), String>> = OnceLock::new();
static RECORDED: Mutex<Recorded> = Mutex::new(Recorded::new());

/// What is recorded now.
struct Recorded {
    /// By the first of the ports.
    listeners: BTreeMap<u16, Listener>,
    /// By their `topologyId`.
    topologies: BTreeMap<String, Topology>,
}

/// The messages of these components about the servers at these ports.
struct Listener {
    ports: Vec<u16>,
    components: Vec<String>,
    messages: Vec<LogMessage>,
    /// Of the client: the first that names one of the ports.
    topology: Option<String>,
}

/// Messages of a topology need not name a server. They belong to the listener of the first that one of them names.
enum Topology {
    Unassigned(Vec<LogMessage>),
    Of(Option<u16>),
}

/// Records messages about the servers of a client until it is dropped.
#[derive(Debug)]
pub(in crate::formats) struct LogListener(u16);

impl LogListener {
    /// # Errors
    ///
    /// If the process has another subscriber, or one of the ports another listener.
    pub(in crate::formats) fn start(
        ports: Vec<u16>,
        components: Vec<String>,
    ) -> Result<Self, String> {
        let installed = INSTALLED.get_or_init(|| {
            set_global_default(LogSubscriber)
                .map_err(|error| format!("no log can be observed: {error}"))
        });
        installed.clone()?;
        let first = *ports.first().ok_or("a client without a server")?;
        let mut recorded = lock(&RECORDED);
        if ports.iter().any(|port| recorded.listener(*port).is_some()) {
            return Err("the log of a server can be observed for one client at a time".to_owned());
        }
        let listener = Listener { ports, components, messages: Vec::new(), topology: None };
        recorded.listeners.insert(first, listener);
        Ok(Self(first))
    }

    /// All messages so far.
    pub(in crate::formats) fn messages(&self) -> Vec<LogMessage> {
        let recorded = lock(&RECORDED);
        let listener = recorded.listeners.get(&self.0);
        listener.map(|listener| listener.messages.clone()).unwrap_or_default()
    }
}

impl Drop for LogListener {
    fn drop(&mut self) {
        let mut recorded = lock(&RECORDED);
        recorded.listeners.remove(&self.0);
        if recorded.listeners.is_empty() {
            recorded.topologies.clear();
        }
    }
}

impl Recorded {
    const fn new() -> Self {
        Self { listeners: BTreeMap::new(), topologies: BTreeMap::new() }
    }

    fn record(&mut self, message: LogMessage) {
        let port = message.data["serverPort"].as_u64().and_then(|port| u16::try_from(port).ok());
        let listener = port.map(|port| self.listener(port));
        let Some(id) = message.data["topologyId"].as_str().map(str::to_owned) else {
            return self.record_of(listener.flatten(), vec![message]);
        };
        let topology =
            self.topologies.entry(id.clone()).or_insert(Topology::Unassigned(Vec::new()));
        let (listener, messages) = match (&mut *topology, listener) {
            (&mut Topology::Of(listener), _) => (listener, vec![message]),
            (Topology::Unassigned(messages), None) => return messages.push(message),
            (Topology::Unassigned(messages), Some(listener)) => {
                messages.push(message);
                let messages = std::mem::take(messages);
                let is_of_another = |first: &u16| {
                    let known = self.listeners.get(first).and_then(|it| it.topology.as_ref());
                    known.is_some_and(|known| *known != id)
                };
                let listener = listener.filter(|first| !is_of_another(first));
                let claimed = listener.and_then(|first| self.listeners.get_mut(&first));
                claimed.into_iter().for_each(|it| it.topology = Some(id.clone()));
                *topology = Topology::Of(listener);
                (listener, messages)
            }
        };
        self.record_of(listener, messages);
    }

    /// The first port of the listener to this one.
    fn listener(&self, port: u16) -> Option<u16> {
        let found = self.listeners.iter().find(|(_, listener)| listener.ports.contains(&port));
        found.map(|(first, _)| *first)
    }

    fn record_of(&mut self, listener: Option<u16>, messages: Vec<LogMessage>) {
        let listener = listener.and_then(|first| self.listeners.get_mut(&first));
        let Some(Listener { components, messages: recorded, .. }) = listener else { return };
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
        component(metadata).is_some() && !lock(&RECORDED).listeners.is_empty()
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
