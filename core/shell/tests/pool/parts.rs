//! Parts of the shell by themselves, as embedders use them.

use std::future::Future;
use std::io::{self, ErrorKind};
use std::panic::Location;
use std::path::Path;
use std::pin::{Pin, pin};
use std::process::Command;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use cenote_core::error::{ConnectionError, InterruptedError};
use cenote_core::pool::{ConnId, PoolOptions};
use cenote_shell::builder::Builder;
use cenote_shell::connection::interrupt::Interrupt;
use cenote_shell::connection::{Connector, HandshakeReporter, Target};
use cenote_shell::event::Subscribers;
use cenote_shell::pool::Pool;
use cenote_shell::pool::leak::LeakDetector;
use cenote_shell::runtime::Runtime;
use cenote_shell::runtime::platform::environment;
use cenote_shell::trace::Recording;
use cenote_smol::Smol;
use futures_io::{AsyncRead, AsyncWrite};
use smol::io::{AsyncReadExt, AsyncWriteExt};

use crate::pool::world::{checked, failure};

struct Sleeper;

impl Wake for Sleeper {
    fn wake(self: Arc<Self>) {}
}

/// A listener that is dropped leaves no waker behind: cancelled operations would fill the memory.
#[test]
fn a_dropped_listener_releases_its_waker() {
    let interrupt = Interrupt::default();
    let sleeper = Arc::new(Sleeper);
    {
        let waker = Waker::from(Arc::clone(&sleeper));
        let mut listener = pin!(interrupt.listen());
        assert!(listener.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        assert_eq!(Arc::strong_count(&sleeper), 3);
    }
    assert_eq!(Arc::strong_count(&sleeper), 1);
}

/// A stream that answers each call in a way of its own.
#[derive(Default)]
struct Stream {
    written: Vec<u8>,
    calls: Vec<&'static str>,
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        buffer[..4].copy_from_slice(b"pong");
        Poll::Ready(Ok(4))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.written.extend(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.calls.push("flush");
        Poll::Ready(Ok(()))
    }

    fn poll_close(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.calls.push("close");
        Poll::Ready(Ok(()))
    }
}

struct Streams;

impl<R: Runtime> Connector<R> for Streams {
    type Connection = Stream;
    type Error = ConnectionError;

    async fn connect(
        &self,
        _: Target<R>,
        reporter: HandshakeReporter,
    ) -> Result<Stream, ConnectionError> {
        assert_eq!(format!("{reporter:?}"), "HandshakeReporter { .. }");
        Ok(Stream::default())
    }
}

/// Each operation reaches the stream, until the pool interrupts the connection.
#[test]
fn a_stream_of_futures_io_can_be_interrupted() {
    let builder = Builder::new("db.example.com".parse().expect("an address"), Streams);
    let pool: Pool<Smol, Streams> = checked(builder).build().expect("good options");
    pool.ready();
    smol::block_on(async {
        let mut connection = pool.check_out().await.expect("a connection");
        let mut stream = connection.interruptible();
        let shown = format!("{stream:?}");
        assert!(shown.starts_with("Interruptible") && shown.contains("db.example.com"), "{shown}");
        let mut buffer = [0; 8];
        stream.write_all(b"ping").await.expect("it writes");
        assert_eq!(stream.read(&mut buffer).await.expect("it reads"), 4);
        assert_eq!(&buffer[..4], b"pong");
        stream.flush().await.expect("it flushes");
        stream.close().await.expect("it closes");
        drop(stream);
        assert_eq!(connection.written, b"ping");
        assert_eq!(connection.calls, ["flush", "close"]);

        pool.clear(failure(), true);
        let mut stream = connection.interruptible();
        let errors = [
            stream.write(b"ping").await.expect_err("interrupted"),
            stream.read(&mut buffer).await.expect_err("interrupted"),
            stream.flush().await.expect_err("interrupted"),
            stream.close().await.expect_err("interrupted"),
        ];
        drop(stream);
        for error in errors {
            assert_eq!(error.kind(), ErrorKind::ConnectionAborted);
            assert!(error.get_ref().expect("a cause").is::<InterruptedError>(), "{error}");
        }
        assert_eq!(connection.written, b"ping");
    });
}

#[test]
fn changed_options_keep_the_others_of_the_connection_string() {
    let second = Duration::from_secs(1);
    let builder = cenote_mio::Pool::builder("mongodb://localhost/?maxPoolSize=3").expect("valid");
    let builder = builder.map_options(|options| options.with_max_lifetime(second));
    let expected = PoolOptions::default().with_max_pool_size(3).with_max_lifetime(second);
    assert_eq!(*builder.options(), expected);
    let builder = builder.replace_options(PoolOptions::default());
    assert_eq!(*builder.options(), PoolOptions::default());
}

/// A connection is forgotten as it was noted, and only while detection is on.
#[test]
fn leak_detection_is_switched_with_the_options() {
    let off = PoolOptions::default();
    let on = off.clone().with_leak_detection_threshold(Duration::from_secs(1));
    let never = off.clone().with_leak_detection_threshold(Duration::ZERO);
    let detector = LeakDetector::new(&off, None);
    let id = ConnId::from_parts(1, 0);
    for (options, is_on) in [(&off, false), (&on, true), (&never, false)] {
        detector.set_options(options);
        assert_eq!(detector.note(id, Location::caller(), None, Instant::now), is_on);
        assert_eq!(format!("{detector:?}"), format!("LeakDetector {{ is_on: {is_on}, .. }}"));
    }
}

/// Of which hello tells the server. In a process whose environment has something to say.
#[test]
fn the_environment_is_that_of_the_process() {
    const TEST: &str = "pool::parts::the_environment_is_that_of_the_process";
    if std::env::var_os("VERCEL").is_none() {
        let mut same = Command::new(std::env::current_exe().expect("this test"));
        let output = same.args(["--exact", TEST]).env("VERCEL", "1").output().expect("it runs");
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && printed.contains("1 passed"), "{printed}");
        return;
    }
    let environment = environment();
    assert_eq!(environment.variables.get("VERCEL").map(String::as_str), Some("1"));
    assert_eq!(environment.architecture.as_deref(), Some(std::env::consts::ARCH));
    assert_eq!(environment.has_dockerenv, Path::new("/.dockerenv").exists());
    if cfg!(target_os = "linux") {
        assert_eq!(environment.os_type.as_deref(), Some("Linux"));
    }
}

#[test]
fn debug_output_says_what_there_is() {
    let subscribers = Subscribers::new(vec![Box::new(|_| ())], None);
    assert_eq!(format!("{subscribers:?}"), "Subscribers(1)");
    let interrupt = format!("{:?}", Interrupt::default());
    assert_eq!(interrupt, "Interrupt { has_happened: false, .. }");
    let recording = format!("{:?}", Recording::to_file("pool.bson"));
    assert!(recording.starts_with("Recording { path: \"pool.bson\""), "{recording}");
}
