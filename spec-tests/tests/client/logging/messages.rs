//! The subscriber of the test's process, which collects what the test asks for.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Event, Level, Metadata, Subscriber};

/// The fields of one message, and its `level`.
pub(crate) type Message = BTreeMap<String, String>;

/// Collects the messages of one target, down to one level, until it is dropped. There is one at a time.
pub(crate) struct Messages {
    _turn: MutexGuard<'static, ()>,
}

#[derive(Default)]
struct Collected {
    wanted: Option<(&'static str, Level)>,
    messages: Vec<Message>,
    panics: bool,
}

static TURN: Mutex<()> = Mutex::new(());
static COLLECTED: LazyLock<Arc<Mutex<Collected>>> = LazyLock::new(|| {
    let collected = Arc::<Mutex<Collected>>::default();
    let subscriber = Collector(Arc::clone(&collected));
    tracing::subscriber::set_global_default(subscriber).expect("the only one");
    collected
});

fn collected() -> MutexGuard<'static, Collected> {
    COLLECTED.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Messages {
    pub(crate) fn collect(target: &'static str, level: Level) -> Self {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        *collected() = Collected { wanted: Some((target, level)), ..Collected::default() };
        Self { _turn: turn }
    }

    /// From now on the subscriber panics at every message.
    pub(crate) fn panic(&self) {
        collected().panics = true;
    }

    pub(crate) fn all(&self) -> Vec<Message> {
        collected().messages.clone()
    }

    pub(crate) fn clear(&self) {
        collected().messages.clear();
    }

    pub(crate) fn named(&self, name: &str) -> Vec<Message> {
        self.all().into_iter().filter(|message| message["message"] == name).collect()
    }

    pub(crate) fn until(&self, name: &str, count: usize) {
        let end = Instant::now() + Duration::from_secs(30);
        while self.named(name).len() < count {
            assert!(Instant::now() < end, "{name}: {:#?}", self.all());
            thread::yield_now();
        }
    }
}

impl Drop for Messages {
    fn drop(&mut self) {
        *collected() = Collected::default();
    }
}

struct Collector(Arc<Mutex<Collected>>);

impl Subscriber for Collector {
    fn register_callsite(&self, _: &'static Metadata<'static>) -> Interest {
        // What is wanted changes with every test.
        Interest::sometimes()
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::DEBUG)
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let wanted = self.0.lock().unwrap_or_else(PoisonError::into_inner).wanted;
        wanted.is_some_and(|(target, level)| {
            metadata.target() == target && *metadata.level() <= level
        })
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        fields.0.insert("level".to_owned(), event.metadata().level().to_string());
        let panics = {
            let mut collected = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            collected.messages.push(fields.0);
            collected.panics
        };
        assert!(!panics, "on purpose");
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[derive(Default)]
struct Fields(Message);

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}"));
    }
}

/// That a message has these keys besides `message` and `level`, and no others. Those behind a `?` may be absent.
pub(crate) fn has_the_keys(message: &Message, keys: &str) {
    let keys: Vec<_> = keys.split_whitespace().chain(["message", "level"]).collect();
    for key in keys.iter().filter(|key| !key.starts_with('?')) {
        assert!(message.contains_key(*key), "without {key}: {message:#?}");
    }
    let known = |key: &String| keys.iter().any(|known| known.trim_start_matches('?') == key);
    assert!(message.keys().all(known), "{message:#?}");
}
