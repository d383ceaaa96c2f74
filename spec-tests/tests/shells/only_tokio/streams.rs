//! The bytes of connections that are checked out, for drivers with a wire of their own.

use std::future::Future;
use std::io::{self, ErrorKind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use bson::rawdoc;
use cenote_core::error::{ConnectionError, InterruptedError, Stage};
use cenote_core::wire::{Flags, Frame, Ids, Message, MessageLimit, MessageWriter};
use cenote_endpoint::{Fault, Settings};
use cenote_tokio::{
    Builder, Connector, HandshakeReporter, OperationError, Pool, PooledConnection, RawStream,
    Target, Tokio,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex, split};

use super::world::{checked, ping, pool};
use crate::world::{at, closed, plain, set, tls};

fn ping_bytes() -> Vec<u8> {
    let mut bytes = Vec::new();
    let (ids, command) = (Ids::request(1), rawdoc! { "ping": 1 });
    MessageWriter::command(&mut bytes, ids, Flags::NONE, &command, "admin")
        .expect("it works")
        .finish(MessageLimit::DEFAULT)
        .expect("it works");
    bytes
}

async fn reply(stream: &mut RawStream<'_>) -> io::Result<bool> {
    let length = stream.read_i32_le().await?;
    let mut bytes = length.to_le_bytes().to_vec();
    bytes.resize(usize::try_from(length).expect("it works"), 0);
    stream.read_exact(&mut bytes[4..]).await?;
    let message = Message::parse(Frame::new(&bytes, MessageLimit::DEFAULT).expect("it works"))
        .expect("it works");
    Ok(message.body().get_f64("ok").is_ok_and(|ok| ok == 1.0))
}

fn is_interrupted(error: &io::Error) -> bool {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<InterruptedError>());
    error.kind() == ErrorKind::ConnectionAborted && inner.is_some()
}

#[tokio::test]
async fn who_is_done_gives_it_back_healthy() {
    let endpoint = tls(Settings::default());
    let (pool, events) = pool(&endpoint.uri());
    for _ in 0..2 {
        let mut connection = pool.check_out().await.unwrap();
        for _ in 0..2 {
            let mut stream = connection.raw_stream().unwrap();
            stream.write_all(&ping_bytes()).await.unwrap();
            assert!(reply(&mut stream).await.unwrap());
            stream.done().await.unwrap();
        }
        // And both ways take turns.
        assert!(connection.command("admin", &rawdoc! { "ping": 1 }).await.is_ok());
    }
    assert_eq!((pool.snapshot().connections_created, closed(&events, 0).len()), (1, 0));
}

// CO-19: the caller did not say that nothing more comes.
#[tokio::test]
async fn who_is_not_done_gives_it_back_broken() {
    let endpoint = plain();
    let (pool, events) = pool(&endpoint.uri());
    let mut connection = pool.check_out().await.unwrap();
    drop(connection.raw_stream().unwrap());
    let again = connection.raw_stream().unwrap_err();
    assert!(matches!(again, OperationError::Connection(_)), "{again}");
    let command = connection.command("admin", &rawdoc! { "ping": 1 }).await;
    assert!(command.is_err(), "it is not ours any more");
    drop(connection);

    // The end of the stream is no way to be done.
    let mut connection = pool.check_out().await.unwrap();
    set(&endpoint, at(Fault::Close, "ping"));
    let mut stream = connection.raw_stream().unwrap();
    stream.write_all(&ping_bytes()).await.unwrap();
    assert!(reply(&mut stream).await.is_err());
    assert_eq!(stream.done().await.unwrap_err().kind(), ErrorKind::NotConnected);
    drop(connection);

    // Nor is a shutdown.
    let mut connection = pool.check_out().await.unwrap();
    let mut stream = connection.raw_stream().unwrap();
    stream.shutdown().await.unwrap();
    stream.done().await.unwrap_err();
    drop(connection);
    assert_eq!(closed(&events, 0), ["error"; 3]);
    endpoint.with(cenote_endpoint::Server::clear_faults);
    assert!(ping(&pool).await);
}

// ER-07
#[tokio::test]
async fn an_interrupt_ends_what_waits_and_what_comes_later() {
    let endpoint = tls(Settings::default());
    set(&endpoint, at(Fault::Stall, "ping"));
    let (pool, events) = pool(&endpoint.uri());
    let mut connection = pool.check_out().await.unwrap();
    let mut stream = connection.raw_stream().unwrap();
    stream.write_all(&ping_bytes()).await.unwrap();
    let (outcome, ()) = tokio::join!(reply(&mut stream), async {
        tokio::task::yield_now().await;
        interrupt(&pool);
    });
    assert!(is_interrupted(&outcome.unwrap_err()));
    assert!(is_interrupted(&stream.write_all(b"more").await.unwrap_err()));
    assert!(is_interrupted(&stream.flush().await.unwrap_err()));
    assert!(is_interrupted(&stream.done().await.unwrap_err()));
    drop(connection);
    assert_eq!(closed(&events, 0), ["error"]);
}

fn interrupt<K: Connector<Tokio>>(pool: &Pool<K>) {
    pool.clear(ConnectionError::timeout(Stage::Hello, Duration::from_secs(1)), true);
}

/// A driver's own connections: pipes in memory, whose other ends are kept.
struct Pipes(std::sync::mpsc::Sender<DuplexStream>);

impl Connector<Tokio> for Pipes {
    type Connection = DuplexStream;
    type Error = ConnectionError;

    async fn connect(
        &self,
        _target: Target,
        _progress: HandshakeReporter,
    ) -> Result<DuplexStream, ConnectionError> {
        let (near, far) = duplex(4);
        self.0.send(far).expect("the test is there");
        Ok(near)
    }
}

async fn piped() -> (Pool<Pipes>, PooledConnection<Pipes>, DuplexStream) {
    let (sender, receiver) = std::sync::mpsc::channel();
    let builder = Builder::new("db.example.com".parse().expect("it works"), Pipes(sender));
    let pool = checked(builder).build().expect("it works");
    pool.ready();
    let connection = pool.check_out().await.expect("it works");
    let far = receiver.try_recv().expect("it works");
    (pool, connection, far)
}

#[tokio::test]
async fn a_drivers_own_stream_can_be_interrupted() {
    let (pool, mut connection, mut far) = piped().await;
    let mut stream = connection.interruptible();
    stream.write_all(b"ping").await.unwrap();
    let mut heard = [0; 4];
    far.read_exact(&mut heard).await.unwrap();
    far.write_all(b"pong").await.unwrap();
    stream.read_exact(&mut heard).await.unwrap();
    assert_eq!(&heard, b"pong");
    drop(stream);
    drop(connection);
    assert_eq!(pool.snapshot().available, 1);
}

/// A waiter that records whether it was woken.
#[derive(Default)]
struct Sleeper(AtomicBool);

impl Wake for Sleeper {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Reading and writing wait in different tasks, and both are told.
#[tokio::test]
async fn both_directions_are_told() {
    let (pool, mut connection, _far) = piped().await;
    let address = pool.address().to_string();
    let (mut reader, mut writer) = split(connection.interruptible());
    let mut buffer = [0; 8];
    {
        let mut reading = pin!(reader.read_exact(&mut buffer));
        let mut writing = pin!(writer.write_all(b"more than fits"));
        let sleepers = [Arc::new(Sleeper::default()), Arc::new(Sleeper::default())];
        let wakers = sleepers.clone().map(Waker::from);
        let mut contexts = wakers.each_ref().map(Context::from_waker);
        assert!(reading.as_mut().poll(&mut contexts[0]).is_pending());
        assert!(writing.as_mut().poll(&mut contexts[1]).is_pending());
        interrupt(&pool);
        assert!(sleepers.iter().all(|sleeper| sleeper.0.load(Ordering::Relaxed)));
        for error in [reading.await.unwrap_err(), writing.await.unwrap_err()] {
            assert!(is_interrupted(&error));
            let expected =
                format!("Connection to {address} interrupted due to server monitor timeout");
            assert_eq!(error.to_string(), expected);
        }
    }
    drop((reader, writer));
    let mut stream = connection.interruptible();
    assert!(is_interrupted(&stream.flush().await.unwrap_err()));
    assert!(is_interrupted(&stream.shutdown().await.unwrap_err()));
    drop(stream);
    drop(connection);
    assert_eq!(pool.snapshot().total, 0, "interrupted, and so not healthy");
}
