//! When the sockets of idle connections are looked at.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use cenote_core::error::{ConnectionError, Stage};
use cenote_shell::connection::{Connector, HandshakeReporter, IdleProbe, Target};
use cenote_tokio::{Builder, Pool, Tokio};
use tokio::time::sleep;

use super::world::checked;

/// Connections that count how often they are looked at, until the peer closes them.
#[derive(Clone, Default)]
struct Peer {
    looks: Arc<AtomicU32>,
    has_closed: Arc<AtomicBool>,
    /// A look is a system call: it is probed first.
    is_probed: bool,
    pool: Arc<OnceLock<Pool<Self>>>,
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

    fn idle_probe(&self, (): &()) -> Option<IdleProbe> {
        let own = self.clone();
        let probe = move || {
            let (found, finds) = channel();
            let pool = own.pool.get().expect("a pool").clone();
            thread::spawn(move || found.send(pool.snapshot().total));
            finds.recv_timeout(Duration::from_secs(30)).expect("the lock is free");
            !own.has_closed.load(Ordering::Relaxed)
        };
        self.is_probed.then(|| Box::new(probe) as IdleProbe)
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

#[tokio::test(start_paused = true)]
async fn a_connection_that_a_probe_finds_silent_is_not_looked_at() {
    let peer = Peer { is_probed: true, ..Peer::default() };
    let pool = pool(&peer);
    assert!(peer.pool.set(pool.clone()).is_ok());
    drop(pool.check_out().await.expect("a connection"));
    sleep(Duration::from_secs(2)).await;
    assert_eq!(peer.looks.load(Ordering::Relaxed), 0);
    peer.has_closed.store(true, Ordering::Relaxed);
    sleep(Duration::from_secs(1)).await;
    assert_eq!((peer.looks.load(Ordering::Relaxed), pool.snapshot().total), (1, 0));
}
