//! The pool in an event loop of one's own: one thread, which never blocks but for events.
//! `cargo run --release -p cenote --example own_mio_loop`.

use std::collections::BTreeMap;
use std::error::Error;
use std::io;
use std::task::Poll as Progress;

use cenote_endpoint::{Endpoint, ListenOptions, Settings, User};
use cenote_mio::bson::{RawDocumentBuf, rawdoc};
use cenote_mio::{MongoConnector, OperationError, Pool, PoolSource, PooledConnection};
use mio::{Events, Interest, Poll, Token, Waker};

/// Whose events are whose: what is the application's, and what the pool may have.
const WAKER: Token = Token(0);
const POOL: std::ops::Range<usize> = 1000..2000;

fn main() -> Result<(), Box<dyn Error>> {
    let users = vec![User::new("app", "pencil")];
    let settings = Settings { auth: true, users, ..Settings::default() };
    let endpoint = Endpoint::start(settings, ListenOptions::with_tls())?;
    let uri = format!("{}&maxPoolSize=3", endpoint.uri());

    let poll = Poll::new()?;
    let waker = Waker::new(poll.registry(), WAKER)?;
    let wake = move || waker.wake().expect("the loop can be woken");
    let source = PoolSource::new(Pool::builder(&uri)?, poll.registry(), POOL, wake)?;
    source.pool().ready();

    let mut application = Application { poll, source, busy: BTreeMap::new(), done: 0 };
    application.run(12)?;
    println!("{}", application.source.pool().snapshot());
    Ok(())
}

struct Application {
    poll: Poll,
    source: PoolSource,
    /// Connections on which a command is under way, by the number of their token.
    busy: BTreeMap<usize, PooledConnection<MongoConnector>>,
    done: usize,
}

impl Application {
    /// Sends so many pings, all at once as far as the pool has connections.
    fn run(&mut self, pings: usize) -> Result<(), Box<dyn Error>> {
        for _ in 0..pings {
            self.source.check_out();
        }
        let mut events = Events::with_capacity(64);
        while self.done < pings {
            self.poll.poll(&mut events, self.source.next_timeout())?;
            for event in &events {
                if !self.source.handle_event(event) && event.token() != WAKER {
                    self.advance(event.token().0)?;
                }
            }
            self.source.turn();
            while let Some((_, outcome)) = self.source.next_ready() {
                self.begin(outcome?)?;
            }
        }
        Ok(())
    }

    /// A connection has come: the command goes out on it.
    fn begin(
        &mut self,
        mut connection: PooledConnection<MongoConnector>,
    ) -> Result<(), Box<dyn Error>> {
        let number = usize::try_from(connection.id())?;
        self.register(number, &mut connection)?;
        connection.begin("admin", &rawdoc! { "ping": 1 })?;
        self.busy.insert(number, connection);
        Ok(self.advance(number)?)
    }

    /// Its socket can be written or read.
    fn advance(&mut self, number: usize) -> Result<(), OperationError> {
        let Some(connection) = self.busy.get_mut(&number) else { return Ok(()) };
        if let Progress::Ready(reply) = connection.advance() {
            self.end(number, &reply?);
        }
        Ok(())
    }

    fn end(&mut self, number: usize, reply: &RawDocumentBuf) {
        self.done += 1;
        println!("ping {} on connection {number}: {reply:?}", self.done);
        if let Some(mut connection) = self.busy.remove(&number) {
            // It goes back without a trace of this loop.
            let _ = self.poll.registry().deregister(&mut *connection);
        }
    }

    fn register(
        &self,
        number: usize,
        connection: &mut PooledConnection<MongoConnector>,
    ) -> io::Result<()> {
        let both = Interest::READABLE | Interest::WRITABLE;
        self.poll.registry().register(&mut **connection, Token(number), both)
    }
}
