//! A function that sees each command.

use std::fmt;

use bson::RawDocument;

type SeeCommand = dyn FnMut(&RawDocument) + Send + Sync;

/// Sees each command; by default there is none.
#[derive(Default)]
pub(super) struct Observer(Option<Box<SeeCommand>>);

impl Observer {
    pub(super) fn new(observer: impl FnMut(&RawDocument) + Send + Sync + 'static) -> Self {
        Self(Some(Box::new(observer)))
    }

    pub(super) fn see(&mut self, command: &RawDocument) {
        if let Some(observer) = &mut self.0 {
            observer(command);
        }
    }
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Observer").field(&self.0.is_some()).finish()
    }
}
