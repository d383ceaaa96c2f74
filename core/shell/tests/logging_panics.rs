//! A collector of log messages that panics, for the whole process.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cenote_core::error::ConnectionError;
use cenote_test_runtimes::alone;
use tokio::runtime;
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

impl cenote_tokio::Connector<cenote_tokio::Tokio> for Instantly {
    type Connection = ();
    type Error = ConnectionError;

    async fn connect(
        &self,
        _: cenote_tokio::Target,
        _: cenote_tokio::HandshakeReporter,
    ) -> Result<(), ConnectionError> {
        Ok(())
    }
}

impl cenote_mio::Connector<cenote_mio::EventLoop> for Instantly {
    type Connection = ();
    type Error = ConnectionError;

    async fn connect(
        &self,
        _: cenote_mio::Target,
        _: cenote_mio::HandshakeReporter,
    ) -> Result<(), ConnectionError> {
        Ok(())
    }
}

#[test]
fn whoever_else_is_told_does_not_notice() {
    alone(|| {
        tracing::subscriber::set_global_default(Panics).unwrap();
        for shell in [on_tokio, on_mio] {
            let told = Arc::new(AtomicUsize::new(0));
            shell(Arc::clone(&told));
            // Created, ready; started, created, ready, checked out; checked in, closed; closed.
            assert_eq!(told.load(Ordering::Relaxed), 9);
        }
    });
}

fn on_tokio(told: Arc<AtomicUsize>) {
    let runtime = runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime").block_on(async {
        let address = "db.example.com".parse().expect("an address");
        let builder = cenote_tokio::Builder::new(address, Instantly).on_event(move |_| {
            told.fetch_add(1, Ordering::Relaxed);
        });
        let pool = builder.build().expect("a pool");
        pool.ready();
        drop(pool.check_out().await.expect("a connection"));
        pool.close().await;
    });
}

fn on_mio(told: Arc<AtomicUsize>) {
    let address = "db.example.com".parse().expect("an address");
    let builder = cenote_mio::Builder::new(address, Instantly).on_event(move |_| {
        told.fetch_add(1, Ordering::Relaxed);
    });
    let pool = builder.build().expect("a pool");
    pool.ready();
    drop(pool.check_out().expect("a connection"));
    pool.close();
}
