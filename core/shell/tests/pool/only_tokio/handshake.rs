//! Timeouts of handshakes, with a peer in memory that delays each answer.

use std::time::Duration;

use bson::rawdoc;
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::pool::CheckOutError;
use cenote_core::uri::ConnectionString;
use cenote_core::wire::{Flags, Framer, Ids, MessageLimit, MessageWriter};
use cenote_tokio::{
    Builder, Connection, Connector, HandshakeReporter, MongoConnector, Pool, Target, Tokio,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::time::{Instant, sleep, timeout};

use super::world::checked;

const FOR_EVER: Duration = Duration::from_secs(100_000);

/// Connects to a server that delays each answer by `delay`.
struct Slow {
    mongo: MongoConnector,
    delay: Duration,
}

impl Connector<Tokio> for Slow {
    type Connection = Connection;
    type Error = ConnectionError;

    async fn connect(
        &self,
        target: Target,
        reporter: HandshakeReporter,
    ) -> Result<Connection, ConnectionError> {
        let (near, far) = duplex(4096);
        tokio::spawn(serve(far, self.delay));
        self.mongo.establish(near, &target, &reporter).await
    }

    fn connect_timeout(&self) -> Option<Duration> {
        self.mongo.connect_timeout()
    }
}

async fn serve(mut stream: DuplexStream, delay: Duration) -> std::io::Result<()> {
    let mut framer = Framer::new(MessageLimit::DEFAULT);
    loop {
        let count = stream.read(framer.spare()).await?;
        if count == 0 {
            return Ok(());
        }
        framer.filled(count);
        while let Some(frame) = framer.next_frame().expect("whole messages") {
            let ids = Ids { request_id: 1, response_to: frame.header().ids.request_id };
            let hello = rawdoc! {
                "ok": 1.0, "helloOk": true, "isWritablePrimary": true,
                "minWireVersion": 0, "maxWireVersion": 25,
            };
            let mut answer = Vec::new();
            MessageWriter::new(&mut answer, ids, Flags::NONE, &hello)
                .finish(MessageLimit::DEFAULT)
                .expect("small");
            sleep(delay).await;
            stream.write_all(&answer).await?;
        }
    }
}

fn pool(options: &str, delay: Duration) -> Pool<Slow> {
    let uri = format!("mongodb://db.example.com/?{options}");
    let uri = ConnectionString::parse(&uri).expect("a connection string");
    let mongo = MongoConnector::new(&uri).expect("no files");
    let address = uri.hosts.first().expect("a host").clone();
    let builder = Builder::new(address, Slow { mongo, delay }).replace_options(uri.pool);
    let pool = checked(builder).build();
    let pool = pool.expect("good options");
    pool.ready();
    pool
}

/// After how long the handshake timed out, if it did.
async fn timed_out(options: &str, deadline: Option<Duration>) -> Option<Duration> {
    let pool = pool(options, FOR_EVER);
    let begin = Instant::now();
    let request = async {
        match deadline {
            Some(after) => pool.check_out_before(begin + after).await,
            None => pool.check_out().await,
        }
    };
    let error = timeout(FOR_EVER / 2, request).await.ok()?.expect_err("there is no answer");
    if let CheckOutError::EstablishFailed { cause } = error.error() {
        assert_eq!(cause.stage(), Stage::Hello, "{cause}");
    }
    Some(begin.elapsed())
}

// CS-04
#[tokio::test(start_paused = true)]
async fn the_shortest_timeout_counts() {
    let (short, long) = (Duration::from_millis(200), Duration::from_millis(700));
    let connect = |options: &str| format!("connectTimeoutMS=700&{options}");
    for (options, deadline, expected) in [
        (connect(""), None, Some(long)),
        // CS-06.
        (connect("socketTimeoutMS=200"), None, Some(short)),
        ("connectTimeoutMS=0&socketTimeoutMS=200".to_owned(), None, Some(short)),
        // CS-07: `timeoutMS` replaces `socketTimeoutMS`; zero is no limit (CS-01). It is for the caller's wait alone.
        (connect("timeoutMS=200&socketTimeoutMS=100"), None, Some(long)),
        (connect("socketTimeoutMS=200&timeoutMS=0"), None, Some(long)),
        ("connectTimeoutMS=0&timeoutMS=0".to_owned(), None, None),
        // CS-05: the caller's deadline ends its wait for the handshake.
        (connect("socketTimeoutMS=100"), Some(short), Some(short)),
        (connect("timeoutMS=100"), Some(short), Some(short)),
    ] {
        let after = timed_out(&options, deadline).await;
        // The clock of the runtime counts whole milliseconds.
        let rounded = after.map(|after| Duration::from_millis(after.as_millis() as u64));
        assert_eq!(rounded, expected, "{options} {deadline:?}");
    }
}

// BG-04, CS-08, CS-09: `timeoutMS` applies to each command of a connection that no caller waits for.
#[tokio::test(start_paused = true)]
async fn background_connections_have_the_timeout_of_an_operation() {
    for (allowed, is_made) in [(10, false), (20, true)] {
        let delay = Duration::from_millis(15);
        let pool = pool(&format!("minPoolSize=1&timeoutMS={allowed}"), delay);
        sleep(Duration::from_millis(100)).await;
        assert_eq!(pool.snapshot().available > 0, is_made, "{allowed}: {}", pool.snapshot());
    }
}
