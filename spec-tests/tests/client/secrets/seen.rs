//! All that is shown, from whichever thread.

use std::error::Error;
use std::fmt::Debug;
use std::iter;
use std::mem;
use std::panic;
use std::sync::{Mutex, PoisonError};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

static SEEN: Mutex<Vec<u8>> = Mutex::new(Vec::new());

pub(super) fn see(shown: impl AsRef<[u8]>) {
    let mut seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
    seen.extend(shown.as_ref());
    seen.push(b'\n');
}

pub(super) fn see_debug(shown: &dyn Debug) {
    see(format!("{shown:?}"));
}

/// With its sources.
pub(super) fn see_error(error: &dyn Error) {
    for error in iter::successors(Some(error), |&error| error.source()) {
        see(format!("{error} {error:?} {error:#?}"));
    }
}

/// What was seen since the last call.
pub(super) fn take() -> Vec<u8> {
    mem::take(&mut *SEEN.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Sees panics, and all that the library tells `tracing`, in this process.
pub(super) fn see_all() {
    panic::set_hook(Box::new(|panic| {
        eprintln!("{panic}");
        see(panic.to_string());
    }));
    tracing::subscriber::set_global_default(Fields).expect("the only one");
}

/// Of events and spans.
struct Fields;

impl Subscriber for Fields {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("cenote")
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        span.record(&mut Fields);
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        values.record(&mut Fields);
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut Fields);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        see(format!("{field}: {value:?}"));
    }
}
