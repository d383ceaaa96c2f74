use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bson::rawdoc;
use cenote_core::wire::{Flags, Ids, MessageLimit, MessageWriter};
use cenote_endpoint::{Ending, Endpoint, Server};
use cenote_replay::random::SplitMix;
use cenote_replay::text::{counted, span};
use tokio::time::{Instant, sleep};

use super::operation::Operations;
use super::progress::Progress;
use super::server_fault::ServerFault;
use super::tally::Tally;
use super::timeline::{Incident, Timeline};
use crate::proxy::FaultProxy;

/// Gives the server, the way there or the client one trouble after another, each when what the last one
/// broke is good again.
pub(super) struct Chaos {
    pub(super) endpoint: Arc<Endpoint>,
    pub(super) proxy: Arc<FaultProxy>,
    pub(super) timeline: Arc<Timeline>,
    pub(super) progress: Arc<Progress>,
    pub(super) tally: Arc<Tally>,
    /// When the work ends, if that is known.
    pub(super) end: Option<Duration>,
}

/// No trouble begins later than this before the end: its recovery is to be seen.
const LAST: Duration = Duration::from_millis(1500);
/// Without a recovery by then, the fault is reported as not recovered.
const PATIENCE: Duration = Duration::from_secs(5);
/// The polling interval.
const STEP: Duration = Duration::from_millis(10);

/// A fault, and where it happens.
#[derive(Clone, Copy)]
enum Which {
    Server(ServerFault),
    /// While tasks rest.
    Idle(IdleFault),
    /// Nothing passes the proxy, and no connection is closed.
    Cut,
    /// New connections end after some bytes, in various ways, or are slow.
    ShortLives,
    /// The client stands still, and the server goes on.
    Pause,
}

/// What happens to connections on which no command is under way.
#[derive(Clone, Copy)]
enum IdleFault {
    End(Ending),
    /// A reply that no command asked for.
    UnaskedReply,
}

/// Longer than the timeout of a reply.
const CUT: Duration = Duration::from_millis(700);

/// Longer than the timeouts of a reply, of an establishment and of a check.
const PAUSE: Duration = Duration::from_secs(2);

/// Longer than `heartbeatFrequencyMS`, so that there are new connections.
const NEW: Duration = Duration::from_millis(700);

/// Longer than the time between two looks at idle connections.
const IDLE: Duration = Duration::from_millis(700);

impl Chaos {
    pub(super) async fn reign(self) {
        let mut random = SplitMix(1);
        for trouble in Which::all().cycle() {
            self.wait(Duration::from_millis(400 + random.below(300)), || false).await;
            let last = LAST + trouble.more_time();
            if self.is_over() || self.end.is_some_and(|end| self.timeline.now() + last > end) {
                return;
            }
            self.timeline.begin(trouble.name());
            self.progress.say(&begun(self.timeline.now(), trouble));
            let before = self.counted(trouble);
            let connections = self.begin(trouble, &mut random).await;
            let time = Duration::from_millis(150 + random.below(150));
            self.wait(time + trouble.more_time(), || false).await;
            let has_hit = || connections.is_some() || self.counted(trouble) > before;
            self.wait(PATIENCE, has_hit).await;
            self.end(trouble);
            let hits = connections.unwrap_or_else(|| self.counted(trouble).saturating_sub(before));
            self.timeline.end(hits);
            // What is broken may be noticed late: a stalled server says nothing.
            self.wait(Duration::from_millis(600), || false).await;
            self.wait(PATIENCE, || self.timeline.last().is_some_and(|it| it.is_over())).await;
            if let Some(incident) = self.timeline.last() {
                self.progress.say(&ended(&incident));
            }
        }
    }

    /// Returns how many connections the fault affects at once; `None` if it affects what comes.
    async fn begin(&self, trouble: Which, random: &mut SplitMix) -> Option<u64> {
        let open = || self.endpoint.with(|server, _| server.statistics().open);
        match trouble {
            Which::Server(trouble) => {
                let open = trouble.is_of_all().then(open);
                trouble.begin(&self.endpoint, Operations::VERIFIED, 1 + random.below(30));
                open
            }
            Which::Idle(fault) => {
                self.tally.rest(true);
                self.wait(PATIENCE, || !self.tally.is_busy()).await;
                let count = self.endpoint.with(|server, now| fault.begin(server, now));
                u64::try_from(count).ok()
            }
            Which::Cut => {
                self.proxy.cut();
                Some(open())
            }
            Which::ShortLives => {
                self.proxy.draw(Some(random.below(u64::MAX)));
                // So that there are new ones.
                let reset = Ending::Reset;
                self.endpoint.with(|server, now| server.break_connections(now, reset, None));
                None
            }
            Which::Pause => {
                self.tally.pause.begin(PAUSE);
                Some(1)
            }
        }
    }

    /// All is as it should be again. What happened to connections stays done.
    fn end(&self, trouble: Which) {
        match trouble {
            Which::Server(trouble) => trouble.end(&self.endpoint),
            Which::Idle(_) => self.tally.rest(false),
            Which::Cut => self.proxy.mend(),
            Which::ShortLives => self.proxy.draw(None),
            // It ends by itself.
            Which::Pause => {}
        }
    }

    /// How many connections or replies a fault that affects what comes has affected so far.
    fn counted(&self, trouble: Which) -> u64 {
        match trouble {
            Which::ShortLives | Which::Server(ServerFault::RefuseConnections) => {
                self.proxy.connections() as u64
            }
            Which::Server(_) | Which::Idle(_) | Which::Cut | Which::Pause => {
                self.endpoint.with(|server, _| server.statistics().faults)
            }
        }
    }

    fn is_over(&self) -> bool {
        self.tally.is_over.load(Ordering::Relaxed)
    }

    /// For this long, or until the end, or until it is enough.
    async fn wait(&self, time: Duration, is_enough: impl Fn() -> bool) {
        let end = Instant::now() + time;
        while Instant::now() < end && !self.is_over() && !is_enough() {
            sleep(STEP).await;
        }
    }
}

impl Which {
    /// Those with the widest effect come first.
    fn all() -> impl Iterator<Item = Self> + Clone {
        let [first, second, others @ ..] = ServerFault::ALL.map(|(fault, _)| Self::Server(fault));
        let idle = [
            IdleFault::End(Ending::Fin),
            IdleFault::End(Ending::Reset),
            IdleFault::End(Ending::Close),
            IdleFault::UnaskedReply,
        ];
        let beginning = [first, second, Self::Cut, Self::ShortLives, Self::Pause];
        beginning.into_iter().chain(idle.map(Self::Idle)).chain(others)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Server(trouble) => trouble.name(),
            Self::Idle(IdleFault::End(Ending::Close)) => "idle: close_notify",
            Self::Idle(IdleFault::End(Ending::Fin)) => "idle: FIN",
            Self::Idle(IdleFault::End(Ending::Reset)) => "idle: RST",
            Self::Idle(IdleFault::End(Ending::Stall | _)) => "idle: silence",
            Self::Idle(IdleFault::UnaskedReply) => "idle: unasked reply",
            Self::Cut => "the network is cut",
            Self::ShortLives => "reset of all, and short lives",
            Self::Pause => "the client is paused",
        }
    }

    const fn more_time(self) -> Duration {
        match self {
            Self::Cut => CUT,
            Self::Idle(_) => IDLE,
            Self::Pause => PAUSE,
            Self::ShortLives | Self::Server(ServerFault::HostileTexts) => NEW,
            Self::Server(_) => Duration::ZERO,
        }
    }
}

impl IdleFault {
    /// Returns how many connections it affects.
    fn begin(self, server: &mut Server, now: Duration) -> usize {
        match self {
            Self::End(ending) => server.break_idle(now, ending),
            Self::UnaskedReply => server.send_unasked(now, &unasked_reply()),
        }
    }
}

/// A good reply to a message that the client sent long ago.
fn unasked_reply() -> Vec<u8> {
    let mut bytes = Vec::new();
    let ids = Ids { request_id: 1, response_to: 1 };
    let reply = MessageWriter::new(&mut bytes, ids, Flags::NONE, &rawdoc! { "ok": 1.0 });
    // So short a message has no error.
    let _ = reply.finish(MessageLimit::DEFAULT);
    bytes
}

fn begun(at: Duration, trouble: Which) -> String {
    format!("{:>5.1} s  trouble: {}", at.as_secs_f64(), trouble.name())
}

fn ended(incident: &Incident) -> String {
    let Incident { cleared, closed, failed, good_again, .. } = incident;
    let closed = match closed {
        0 => String::new(),
        &count => format!("{} closed, ", counted(count, "connection", "connections")),
    };
    let cleared = match cleared {
        Some(after) => format!("pool cleared after {}, ", span(*after)),
        None => String::new(),
    };
    let what = match (failed, good_again) {
        (0, _) => "nothing failed".to_owned(),
        (_, Some(after)) => format!("{failed} failed, good again after {}", span(*after)),
        (_, None) => format!("{failed} failed, not good again yet"),
    };
    format!("{:>5}    {closed}{cleared}{what}", "")
}
