//! Connections that take their time to be opened.

use std::time::Duration;

use cenote_endpoint::{Settings, TlsFault};

use super::world::{ping, pool};
use crate::world::{tls, with};

// ES-04
#[tokio::test]
async fn hundreds_of_handshakes_byte_by_byte_do_not_hold_up_others() {
    let slow = tls(Settings::default());
    slow.set_tls_fault(Some(TlsFault::Drip { every: Duration::from_millis(1) }));
    let uri = with(&slow.uri(), "maxConnecting=100&maxPoolSize=100&connectTimeoutMS=60000");
    let (dripping, _) = pool(&uri);
    let tasks: Vec<_> = (0..100)
        .map(|_| {
            let pool = dripping.clone();
            tokio::spawn(async move { ping(&pool).await })
        })
        .collect();
    let quick = tls(Settings::default());
    let (others, _) = pool(&quick.uri());
    while dripping.snapshot().pending < 100 {
        tokio::task::yield_now().await;
    }
    for _ in 0..20 {
        assert!(ping(&others).await);
    }
    assert_eq!(dripping.snapshot().in_use, 0, "they are still at it");
    for task in tasks {
        assert!(task.await.unwrap());
    }
}
