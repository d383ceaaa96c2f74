//! A collector of log messages that panics. In a process of its own: it is for all of it.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cenote_core::error::ConnectionError;
use cenote_tokio::{Builder, Connector, Progress, Target};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

struct Panics;

impl Subscriber for Panics {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "cenote::connection"
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {
        // Quietly: a panic with a payload and no message.
        resume_unwind(Box::new("on purpose"));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

struct Instantly;

impl Connector for Instantly {
    type Connection = ();

    async fn connect(&self, _: Target, _: Progress<Self>) -> Result<(), ConnectionError> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_else_is_told_does_not_notice() {
    tracing::subscriber::set_global_default(Panics).unwrap();
    let told = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&told);
    let pool = Builder::new("db.example.com".parse().unwrap(), Instantly)
        .on_event(move |_| {
            count.fetch_add(1, Ordering::Relaxed);
        })
        .build()
        .unwrap();
    pool.ready();
    drop(pool.check_out().await.unwrap());
    pool.close().await;
    // Created, ready; started, created, ready, checked out; checked in, closed; closed.
    assert_eq!(told.load(Ordering::Relaxed), 9);
}
