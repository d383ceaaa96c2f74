use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cenote_endpoint::{Ending, Endpoint};
use tokio::time::{Instant, sleep};

use super::progress::Progress;
use super::text;
use super::timeline::{Incident, Timeline};
use crate::proxy::FaultProxy;
use crate::soak::chance::Chance;
use crate::soak::trouble::Trouble;

/// Gives the server or the way there one trouble after another, each when what the last one broke is
/// good again.
pub(super) struct Chaos {
    pub(super) endpoint: Arc<Endpoint>,
    pub(super) proxy: Arc<FaultProxy>,
    pub(super) timeline: Arc<Timeline>,
    pub(super) progress: Arc<Progress>,
    pub(super) is_over: Arc<AtomicBool>,
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
    Server(Trouble),
    /// Nothing passes the proxy, and no connection is closed.
    Cut,
    /// New connections end after some bytes, in various ways, or are slow.
    ShortLives,
}

/// Longer than the timeout of a reply.
const CUT: Duration = Duration::from_millis(700);

impl Chaos {
    pub(super) async fn reign(self) {
        let mut chance = Chance::new(1);
        for trouble in Which::all().cycle() {
            self.rest(Duration::from_millis(400 + chance.below(300)), || false).await;
            if self.is_over() || self.end.is_some_and(|end| self.timeline.now() + LAST > end) {
                return;
            }
            self.timeline.begin(trouble.name());
            self.progress.say(&begun(self.timeline.now(), trouble));
            self.begin(trouble, &mut chance);
            let time = Duration::from_millis(150 + chance.below(150));
            self.rest(time + trouble.more_time(), || false).await;
            self.end(trouble);
            self.timeline.end();
            // What is broken may be noticed late: a stalled server says nothing.
            self.rest(Duration::from_millis(600), || false).await;
            self.rest(PATIENCE, || self.timeline.last().is_some_and(|it| it.is_over())).await;
            if let Some(incident) = self.timeline.last() {
                self.progress.say(&ended(&incident));
            }
        }
    }

    fn begin(&self, trouble: Which, chance: &mut Chance) {
        match trouble {
            Which::Server(trouble) => trouble.begin(&self.endpoint, 1 + chance.below(30)),
            Which::Cut => self.proxy.cut(),
            Which::ShortLives => {
                self.proxy.draw(Some(chance.below(u64::MAX)));
                // So that there are new ones.
                let reset = Ending::Reset;
                self.endpoint.with(|server, now| server.break_connections(now, reset, None));
            }
        }
    }

    /// All is as it should be again. What happened to connections stays done.
    fn end(&self, trouble: Which) {
        match trouble {
            Which::Server(trouble) => trouble.end(&self.endpoint),
            Which::Cut => self.proxy.mend(),
            Which::ShortLives => self.proxy.draw(None),
        }
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// For this long, or until the end, or until it is enough.
    async fn rest(&self, time: Duration, is_enough: impl Fn() -> bool) {
        let end = Instant::now() + time;
        while Instant::now() < end && !self.is_over() && !is_enough() {
            sleep(STEP).await;
        }
    }
}

impl Which {
    /// Those with the widest effect come first.
    fn all() -> impl Iterator<Item = Self> + Clone {
        let [first, second, others @ ..] = Trouble::ALL.map(Self::Server);
        [first, second, Self::Cut, Self::ShortLives].into_iter().chain(others)
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Server(trouble) => trouble.name(),
            Self::Cut => "the network is cut",
            Self::ShortLives => "reset of all, and short lives",
        }
    }

    const fn more_time(self) -> Duration {
        match self {
            Self::Cut => CUT,
            Self::Server(_) | Self::ShortLives => Duration::ZERO,
        }
    }
}

fn begun(at: Duration, trouble: Which) -> String {
    format!("{:>5.1} s  trouble: {}", at.as_secs_f64(), trouble.name())
}

fn ended(incident: &Incident) -> String {
    let Incident { cleared, failed, good_again, .. } = incident;
    let cleared = match cleared {
        Some(after) => format!("pool cleared after {}, ", text::time(*after)),
        None => String::new(),
    };
    let what = match (failed, good_again) {
        (0, _) => "nothing failed".to_owned(),
        (_, Some(after)) => format!("{failed} failed, good again after {}", text::time(*after)),
        (_, None) => format!("{failed} failed, not good again yet"),
    };
    format!("{:>5}    {cleared}{what}", "")
}
