//! Clients of one server, each with a pool, in virtual time.
//!
//! The pools are real ones (or, to compare, of [other habits](super::rival)); the server is a queue
//! with a few workers, whose work is opening connections and operations; and callers are either so
//! many who ask again and again, or come by themselves, however long others wait. A client watches
//! its server as a driver does: after a clear it asks every half second whether the server is there.

mod callers;
mod client;
mod due;
mod server;
mod watch;

use std::time::Duration;

use cenote_core::pool::{Instant, PoolOptions, PoolTypes};

use self::client::Client;
use self::due::Due;
use self::server::Server;
use super::rival::Rival;
use crate::agenda::Agenda;
use crate::replay::random::SplitMix;

pub(super) use self::callers::Callers;
pub(super) use self::server::Service;

/// How a fleet is.
#[derive(Clone, Debug)]
pub(super) struct Setup {
    pub(super) clients: u32,
    pub(super) options: PoolOptions,
    pub(super) habits: Habits,
    pub(super) service: Service,
    /// When the server is away.
    pub(super) outage: Option<(Duration, Duration)>,
    /// The age at which whatever lies between closes a connection.
    pub(super) cut_at: Option<Duration>,
    pub(super) callers: Callers,
    /// Whether errors of opening have the labels of overload: then SDAM does not clear the pool, and
    /// the driver tries again after a pause (ER-30, ER-42).
    pub(super) has_labels: bool,
    /// `connectTimeoutMS`.
    pub(super) connect_timeout: Duration,
    pub(super) end: Duration,
}

/// What kind of pool the clients have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Habits {
    /// Ours.
    Cenote,
    /// Ours, each with a seed of its own for the lifetimes of its connections.
    OwnSeeds,
    /// Whoever waits longest takes what comes first: [`Rival`].
    Unchained,
}

/// What there is to be told of a fleet.
#[derive(Clone, Debug, Default)]
pub(super) struct Log {
    /// Of requests that had a connection and an answer.
    pub(super) answers: Vec<Answer>,
    /// When somebody was told of a failure that nobody tries again.
    pub(super) failures: Vec<Duration>,
    /// When connections began to be opened.
    pub(super) openings: Vec<Duration>,
    /// When one of them came to nothing, or to a connection that nobody could use.
    pub(super) wasted: Vec<Duration>,
    /// When pools were cleared.
    pub(super) clears: Vec<Duration>,
    /// How long a connection had been available when it was checked out.
    pub(super) rests: Vec<Duration>,
    /// How many connections there were, once a second.
    pub(super) open: Vec<(Duration, usize)>,
}

/// One request that had its answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    pub(super) client: u32,
    pub(super) caller: u32,
    pub(super) asked: Duration,
    pub(super) checked_out: Duration,
    pub(super) answered: Duration,
}

/// The payloads of these pools.
#[derive(Clone, Copy, Debug)]
pub(super) enum Modelled {}

impl PoolTypes for Modelled {
    type Conn = Opened;
    type Waiter = Ask;
    type Cause = Failure;
}

/// An open connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Opened {
    /// When it became available last.
    pub(super) rested: Instant,
    pub(super) is_used: bool,
}

/// Somebody who wants something done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ask {
    pub(super) caller: u32,
    /// For the first time.
    pub(super) asked: Instant,
    /// How often it was tried before.
    pub(super) attempt: u32,
}

/// Why a connection is no good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// It could not be opened, or not in time.
    Opening,
    /// It broke.
    Broken,
}

/// See the module.
pub(super) struct Fleet<'a> {
    setup: &'a Setup,
    chance: SplitMix,
    agenda: Agenda<Due>,
    now: Instant,
    server: Server,
    clients: Vec<Client>,
    log: Log,
}

impl<'a> Fleet<'a> {
    /// Lives until the end of the setup.
    pub(super) fn live(setup: &'a Setup, seed: u64) -> Log {
        let mut fleet = Self {
            setup,
            chance: SplitMix(seed),
            agenda: Agenda::default(),
            now: Instant::ORIGIN,
            server: Server::new(setup.service),
            clients: Vec::new(),
            log: Log::default(),
        };
        fleet.begin();
        let end = Instant::ORIGIN + setup.end;
        while let Some((at, due)) = fleet.agenda.pop() {
            if at > end {
                break;
            }
            fleet.now = at;
            fleet.happen(due);
        }
        fleet.log
    }

    fn begin(&mut self) {
        for number in 0..self.setup.clients {
            let options = self.setup.options.clone();
            self.clients.push(match self.setup.habits {
                Habits::Cenote => Client::new(options),
                Habits::OwnSeeds => Client::new(options.with_jitter_seed(u64::from(number) + 1)),
                Habits::Unchained => Client::with_rival(Rival::new(&options)),
            });
            self.become_ready(number);
        }
        self.callers_begin();
        if let Some((from, to)) = self.setup.outage {
            self.agenda.plan(Instant::ORIGIN + from, Due::Down);
            self.agenda.plan(Instant::ORIGIN + to, Due::Up);
        }
        self.agenda.plan(Instant::ORIGIN, Due::Count);
    }

    fn happen(&mut self, due: Due) {
        match due {
            Due::Ask { client, ask } => self.ask(client, ask),
            Due::Arrive => self.arrive(),
            Due::Timer { client } => self.timer(client),
            Due::Opened { client, id, is_good } => self.opened(client, id, is_good),
            Due::Answered { client, id, use_number } => self.answered(client, id, use_number),
            Due::Cut { client, id } => self.cut(client, id),
            Due::Check { client } => self.check(client),
            Due::Checked { client, is_good } => self.checked(client, is_good),
            Due::Down => self.goes_down(),
            Due::Up => self.server.is_up = true,
            Due::Count => self.count(),
        }
    }

    fn count(&mut self) {
        let open = self.clients.iter().map(Client::open).sum();
        self.log.open.push((self.since_begin(), open));
        self.plan(Duration::from_secs(1), Due::Count);
    }

    fn plan(&mut self, after: Duration, due: Due) {
        self.agenda.plan(self.now + after, due);
    }

    fn is_wasted(&mut self) {
        self.log.wasted.push(self.since_begin());
    }

    fn since_begin(&self) -> Duration {
        self.now.saturating_since(Instant::ORIGIN)
    }
}
