//! When the sockets of idle connections are looked at.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use cenote_core::error::{ConnectionError, Stage};
use cenote_shell::connection::{Connector, HandshakeReporter, Target};
use cenote_tokio::{Builder, Pool, Tokio};
use tokio::time::sleep;

use super::world::checked;

/// Connections that count how often they are looked at, until the peer closes them.
#[derive(Clone, Default)]
struct Peer {
    looks: Arc<AtomicU32>,
    has_closed: Arc<AtomicBool>,
}

impl Connector<Tokio> for Peer {
    type Connection = ();
    type Error = ConnectionError;

    const LOOKS_AT_IDLE: bool = true;

    async fn connect(&self, _: Target<Tokio>, _: HandshakeReporter) -> Result<(), ConnectionError> {
        Ok(())
    }

    fn idle_fault(&self, (): &mut ()) -> Option<ConnectionError> {
        self.looks.fetch_add(1, Ordering::Relaxed);
        let has_closed = self.has_closed.load(Ordering::Relaxed);
        has_closed.then(|| ConnectionError::network(Stage::Operation, "closed by the peer"))
    }
}

fn pool(peer: &Peer) -> Pool<Peer> {
    let builder = Builder::new("db.example.com".parse().expect("an address"), peer.clone());
    let pool = checked(builder).build().expect("good options");
    pool.ready();
    pool
}

/// In no time: the pool's own look would come later.
#[tokio::test(start_paused = true)]
async fn a_check_out_looks_at_the_connection_that_it_would_get() {
    let peer = Peer::default();
    let pool = pool(&peer);
    drop(pool.check_out().await.expect("a connection"));
    peer.has_closed.store(true, Ordering::Relaxed);
    assert_eq!(pool.check_out().await.expect("a connection").id(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_pool_that_is_not_used_is_looked_at_less_often() {
    let peer = Peer::default();
    let pool = pool(&peer);
    let looks_within = async |seconds| {
        let before = peer.looks.load(Ordering::Relaxed);
        sleep(Duration::from_secs(seconds)).await;
        peer.looks.load(Ordering::Relaxed) - before
    };
    for _ in 0..2 {
        drop(pool.check_out().await.expect("a connection"));
        // The first look after a quiet time comes within 2 s, as all others do.
        assert!((17..=20).contains(&looks_within(10).await), "twice a second");
        assert!((9..=12).contains(&looks_within(20).await), "every 2 s");
    }
    peer.has_closed.store(true, Ordering::Relaxed);
    assert_eq!(looks_within(2).await, 1);
    assert_eq!(pool.snapshot().total, 0);
}
