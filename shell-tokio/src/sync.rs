//! The lock and the bell, which a model checker replaces by its own: `--cfg cenote_model`.

#[cfg(all(test, cenote_model))]
pub(crate) use crate::model::Notify;
#[cfg(all(test, cenote_model))]
pub(crate) use loom::sync::{Mutex, MutexGuard};
#[cfg(not(all(test, cenote_model)))]
pub(crate) use std::sync::{Mutex, MutexGuard};
#[cfg(not(all(test, cenote_model)))]
pub(crate) use tokio::sync::Notify;
