//! What is done with a connection dropped after each of its polls, over TLS on real sockets, while
//! the server answers by three bytes. The scripted counterparts are in the shell itself.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::{Duration, Instant};

use bson::rawdoc;
use cenote_check::{Checker, Limits, Line};
use cenote_core::wire::{Flags, Ids, MessageLimit, MessageWriter};
use cenote_endpoint::{Endpoint, Fault, Settings};
use cenote_tokio::Pool;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::world::ping;
use crate::world::{at, set, tls};

/// What becomes of the future within so many polls; it is dropped then.
async fn within(polls: usize, future: impl Future<Output = ()>) -> bool {
    let mut future = pin!(future);
    let mut left = polls;
    poll_fn(|cx| {
        if left == 0 {
            return Poll::Ready(false);
        }
        left -= 1;
        let is_ready = future.as_mut().poll(cx).is_ready();
        match (is_ready, left) {
            (true, _) => Poll::Ready(true),
            (false, 0) => Poll::Ready(false),
            (false, _) => Poll::Pending,
        }
    })
    .await
}

/// A pool whose events are checked as they come.
fn checked(uri: &str) -> (Pool, Arc<Mutex<Checker>>) {
    let checker = Arc::new(Mutex::new(Checker::new(Limits::default())));
    let (heard, began) = (Arc::clone(&checker), Instant::now());
    let builder = Pool::builder(uri).expect("a connection string").on_event(move |event| {
        let line = Line::of(&event.event, &event.address, began.elapsed());
        heard.lock().expect("no panic").tell(&line);
    });
    let pool = builder.build().expect("good options");
    pool.ready();
    (pool, checker)
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Deed {
    Command,
    Message,
    Bytes,
}

async fn story(pool: &Pool, deed: Deed) {
    let mut connection = pool.check_out().await.expect("a connection");
    let command = rawdoc! { "ping": 1 };
    if deed == Deed::Command {
        connection.command("admin", &command).await.expect("a reply");
        return;
    }
    let mut message = Vec::new();
    let ids = Ids::request(connection.next_request_id());
    MessageWriter::command(&mut message, ids, Flags::NONE, &command, "admin")
        .and_then(|writer| writer.finish(MessageLimit::DEFAULT))
        .expect("a message");
    if deed == Deed::Message {
        connection.send(&message).await.expect("it is sent");
        connection.receive().await.expect("a reply");
        return;
    }
    let mut stream = connection.raw_stream().expect("it is our turn");
    let exchange = async {
        stream.write_all(&message).await?;
        let length = stream.read_i32_le().await?;
        let mut rest = vec![0; usize::try_from(length - 4).map_err(io::Error::other)?];
        stream.read_exact(&mut rest).await?;
        stream.done().await
    };
    exchange.await.expect("bytes there and back");
}

/// Drops the story after no poll, after one, … until it comes to its end.
async fn drop_everywhere(endpoint: &Endpoint, deed: Deed) {
    let (pool, checker) = checked(&endpoint.uri());
    for polls in 0.. {
        let is_done = within(polls, story(&pool, deed)).await;
        let snapshot = pool.snapshot();
        let counts = (snapshot.in_use, snapshot.waiting);
        assert_eq!(counts, (0, 0), "{deed:?}, {polls} polls: {snapshot}");
        // Whatever became of it, the pool serves.
        assert!(ping(&pool).await, "{deed:?}, {polls} polls");
        if is_done {
            // How many there are is for the operating system to say, which may join pieces.
            assert!(polls > 1, "{deed:?}: it has to wait somewhere: {polls} polls");
            break;
        }
    }
    pool.close().await;
    assert_eq!(pool.snapshot().total, 0);
    drop(pool);
    let checker = std::mem::take(&mut *checker.lock().expect("no panic"));
    let report = checker.finish();
    assert!(report.is_good(), "{deed:?}: {report}");
    assert!(report.check_outs > 3, "{deed:?}: {report}");
    // The server sees them go, too.
    while endpoint.with(|server, _| server.statistics()).open > 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn every_story_dropped_after_every_poll_over_tls() {
    let endpoint = tls(Settings::default());
    set(&endpoint, at(Fault::Drip { bytes: 3, every: Duration::from_micros(200) }, "ping"));
    for deed in [Deed::Command, Deed::Message, Deed::Bytes] {
        drop_everywhere(&endpoint, deed).await;
    }
}
