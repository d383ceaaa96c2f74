//! Clients of one server, each with a pool, in virtual time.
//!
//! The pools are real (or, for comparison, [of another kind](super::unchained_pool)); the server is
//! a queue with some workers, which accept connections and execute operations; callers either
//! repeat requests or arrive independently of answers. A client monitors its server as a driver
//! does: after a clear, it checks every half second whether the server is available.

mod callers;
mod client;
mod due;
mod freeze;
mod monitor;
mod server;

use std::time::Duration;

use cenote_core::pool::{Instant, PoolOptions, PoolTypes};

use self::client::Client;
use self::due::Due;
use self::server::Server;
use super::newest_first_pool::NewestFirstPool;
use super::unchained_pool::UnchainedPool;
use crate::agenda::Agenda;
use crate::replay::random::SplitMix;

pub(super) use self::callers::Callers;
pub(super) use self::freeze::Freeze;
pub(super) use self::server::Service;

/// The parameters of a fleet.
#[derive(Clone, Debug)]
pub(super) struct Setup {
    pub(super) clients: u32,
    pub(super) options: PoolOptions,
    pub(super) pool_kind: PoolKind,
    pub(super) service: Service,
    /// When the server is unavailable.
    pub(super) outage: Option<(Duration, Duration)>,
    /// The age at which the network closes a connection.
    pub(super) cut_at: Option<Duration>,
    pub(super) freeze: Option<Freeze>,
    pub(super) callers: Callers,
    /// Whether errors of establishment have the labels of overload: then SDAM does not clear the
    /// pool, and the driver retries after a pause.
    pub(super) has_labels: bool,
    /// `connectTimeoutMS`.
    pub(super) connect_timeout: Duration,
    pub(super) end: Duration,
}

/// The kind of the clients' pools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PoolKind {
    /// Cenote's.
    Cenote,
    /// Cenote's, each with its own seed for the lifetimes of connections.
    OwnSeeds,
    /// The oldest request takes the first connection: [`UnchainedPool`].
    Unchained,
    /// The newest request first while the delay stands: [`NewestFirstPool`].
    NewestFirst,
}

/// What happened in a fleet.
#[derive(Clone, Debug, Default)]
pub(super) struct Log {
    /// The requests with a connection and an answer.
    pub(super) answers: Vec<Answer>,
    /// The times of failures that are not retried.
    pub(super) failures: Vec<Duration>,
    /// The times at which connections were started.
    pub(super) openings: Vec<Duration>,
    /// The times of failed or wasted establishments.
    pub(super) wasted: Vec<Duration>,
    /// The times of clears.
    pub(super) clears: Vec<Duration>,
    /// The idle times of connections that were checked out.
    pub(super) rests: Vec<Duration>,
    /// The number of connections, once per second.
    pub(super) open: Vec<(Duration, usize)>,
}

/// A request with its answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    pub(super) client: u32,
    pub(super) caller: u32,
    pub(super) asked: Duration,
    pub(super) checked_out: Duration,
    pub(super) answered: Duration,
}

/// The payload types of these pools.
#[derive(Clone, Copy, Debug)]
pub(super) enum Modelled {}

impl PoolTypes for Modelled {
    type Conn = Opened;
    type Waiter = Ask;
    type Cause = Failure;
}

/// An established connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Opened {
    /// The time at which it last became available.
    pub(super) rested: Instant,
    pub(super) is_used: bool,
}

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ask {
    pub(super) caller: u32,
    /// The time of the first attempt.
    pub(super) asked: Instant,
    /// The number of earlier attempts.
    pub(super) attempt: u32,
}

/// Why a connection failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// It could not be established in time.
    Opening,
    /// It failed in use.
    Broken,
}

/// A fleet.
pub(super) struct Fleet<'a> {
    setup: &'a Setup,
    random: SplitMix,
    agenda: Agenda<Due>,
    now: Instant,
    server: Server,
    clients: Vec<Client>,
    log: Log,
}

impl<'a> Fleet<'a> {
    /// Runs until the end of the setup.
    pub(super) fn live(setup: &'a Setup, seed: u64) -> Log {
        let mut fleet = Self {
            setup,
            random: SplitMix(seed),
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
            self.clients.push(match self.setup.pool_kind {
                PoolKind::Cenote => Client::new(options),
                PoolKind::OwnSeeds => Client::new(options.with_jitter_seed(u64::from(number) + 1)),
                PoolKind::NewestFirst => Client::with_newest_first(NewestFirstPool::new(&options)),
                PoolKind::Unchained => Client::with_unchained(UnchainedPool::new(&options)),
            });
            self.become_ready(number);
        }
        self.callers_begin();
        self.freeze_begins();
        if let Some((from, to)) = self.setup.outage {
            self.agenda.plan(Instant::ORIGIN + from, Due::Down);
            self.agenda.plan(Instant::ORIGIN + to, Due::Up);
        }
        self.agenda.plan(Instant::ORIGIN, Due::Count);
    }

    fn happen(&mut self, due: Due) {
        if let Some(thawed) = self.thaws(&due) {
            return self.put_off(thawed, due);
        }
        match due {
            Due::Ask { client, ask } => self.ask(client, ask),
            Due::Arrive => self.arrive(),
            Due::Timer { client } => self.timer(client),
            Due::Opened { client, id, is_good } => self.opened(client, id, is_good),
            Due::Answered { client, id, use_number } => self.answered(client, id, use_number),
            Due::Cut { client, id } => self.cut(client, id),
            Due::Check { client } => self.check(client),
            Due::Checked { client, is_good } => self.checked(client, is_good),
            Due::Freeze { client } => self.freeze(client),
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
