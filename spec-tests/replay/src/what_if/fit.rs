//! Whether callers come back after their requests, or come whatever happens to others.

use std::str::FromStr;
use std::time::Duration;

use cenote_core::pool::Instant;

use super::request::in_order;
use super::workload::Workload;

/// How callers come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loop {
    /// Whatever happens to others, as users of a web site do: a slow pool has more requests waiting.
    Open,
    /// Each makes its next request some time after its last one ended, as workers do: a slow pool has fewer requests.
    Closed,
}

impl Loop {
    /// `open` or `closed`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Closed => "closed",
        }
    }
}

impl FromStr for Loop {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = [Self::Open, Self::Closed].into_iter().find(|it| it.name() == text);
        known.ok_or_else(|| format!("`{text}` is neither `open` nor `closed`"))
    }
}

/// Which loop fits a trace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fit {
    /// The one that fits better.
    pub better: Loop,
    /// The number of callers with which the closed loop fits best.
    pub callers: u64,
    /// By how much that is more likely than the open loop: the logarithm of the ratio of likelihoods. Below
    /// [`EVIDENCE`](Self::EVIDENCE) the open loop, which has fewer parameters, is the better explanation.
    pub evidence: f64,
}

impl Fit {
    /// What a closed loop needs to be preferred.
    pub const EVIDENCE: f64 = 5.0;

    /// Compares the times of requests with the number of requests that had not ended then.
    ///
    /// Of N callers with n requests, N - n can make the next one. If callers wait for random times, the rate of requests is
    /// proportional to that number in a closed loop, and independent of it in an open one. The rate of each may change
    /// between windows of the trace. Requests that come by a clock look as if each waited for the last one: an open loop may
    /// be as regular as the trace.
    pub fn of(workload: &Workload) -> Self {
        let windows = Windows::of(workload);
        let regular = windows.regularity();
        let least = windows.most.max(1);
        let (mut callers, mut best) = (least, windows.evidence(least));
        let mut tried = least;
        while tried < least.saturating_mul(32) {
            tried += (tried / 16).max(1);
            let evidence = windows.evidence(tried);
            if evidence > best {
                (callers, best) = (tried, evidence);
            }
        }
        let best = best - regular;
        let better = if best > Self::EVIDENCE { Loop::Closed } else { Loop::Open };
        Self { better, callers, evidence: best }
    }
}

/// How many requests had not ended when each was made, and on average.
struct Windows {
    windows: Vec<Window>,
    most: u64,
}

#[derive(Clone, Default)]
struct Window {
    /// The number at each request.
    made: Vec<u32>,
    /// On average over the time in which the program did not stand still.
    mean: f64,
    time: f64,
    /// Between its requests, in seconds.
    gaps: Vec<f64>,
}

/// Requests in a window, at least, and the largest number of windows.
const REQUESTS: usize = 100;
const WINDOWS: usize = 32;

/// One window in this many does not count: those with most evidence, in which the rate may have changed.
const TRIMMED: usize = 8;

impl Windows {
    fn of(workload: &Workload) -> Self {
        let requests = workload.counted().len();
        let count = (requests / REQUESTS).clamp(1, WINDOWS);
        let length = (workload.duration().as_nanos() as u64 / count as u64).max(1);
        let mut windows = vec![Window::default(); count];
        let (mut now, mut outstanding, mut most) = (workload.start, 0_u32, 0);
        let mut last_made = None;
        for (at, is_made) in changes(workload) {
            while now < at {
                let place =
                    (now.saturating_since(workload.start).as_nanos() as u64 / length) as usize;
                let place = place.min(count - 1);
                let begins_next = workload.start.as_nanos() + (place as u64 + 1) * length;
                let until =
                    if place + 1 == count { at } else { at.min(Instant::from_nanos(begins_next)) };
                if workload.stalls.at(at).is_none() {
                    windows[place].mean +=
                        until.saturating_since(now).as_nanos() as f64 * f64::from(outstanding);
                    windows[place].time += until.saturating_since(now).as_nanos() as f64;
                }
                now = until;
            }
            let place = (at.saturating_since(workload.start).as_nanos() as u64 / length) as usize;
            if is_made {
                let window = &mut windows[place.min(count - 1)];
                if workload.stalls.at(at).is_none() {
                    window.made.push(outstanding);
                }
                let gap = last_made.map(|last| at.saturating_since(last).as_secs_f64());
                window.gaps.extend(gap);
                last_made = Some(at);
                outstanding += 1;
                most = most.max(outstanding);
            } else {
                outstanding -= 1;
            }
        }
        for window in &mut windows {
            window.mean /= window.time.max(1.0);
        }
        Self { windows, most: most.into() }
    }

    /// The logarithm of the ratio of likelihoods of a closed loop of this many callers and an open one.
    fn evidence(&self, callers: u64) -> f64 {
        let callers = callers as f64;
        let of = |Window { made, mean, .. }: &Window| {
            let rates: f64 = made.iter().map(|&n| (callers - f64::from(n)).ln()).sum();
            rates - made.len() as f64 * (callers - mean).ln()
        };
        let mut evidence: Vec<_> =
            self.windows.iter().filter(|it| !it.made.is_empty()).map(of).collect();
        evidence.sort_by(f64::total_cmp);
        let counted = evidence.len() - evidence.len() / TRIMMED;
        evidence[..counted].iter().sum()
    }

    /// By how much requests that are evenly apart explain the trace better than random ones: the logarithm of the ratio of
    /// likelihoods. The time between two of them is that of some steps of random length (an Erlang distribution).
    fn regularity(&self) -> f64 {
        let of = |steps: u32| {
            let number = f64::from(steps);
            let factorial: f64 = (1..steps).map(|it| f64::from(it).ln()).sum();
            let each = number * number.ln() - factorial - number + 1.0;
            let window = |Window { gaps, .. }: &Window| {
                let mean = gaps.iter().sum::<f64>() / gaps.len().max(1) as f64;
                let parts = gaps.iter().map(|gap| (gap / mean).max(LEAST_PART).ln());
                each * gaps.len() as f64 + (number - 1.0) * parts.sum::<f64>()
            };
            let known = self.windows.iter().filter(|it| it.gaps.iter().any(|gap| *gap > 0.0));
            known.map(window).sum::<f64>()
        };
        (1..=MOST_STEPS).map(|power| of(1 << power)).fold(0.0, f64::max)
    }
}

/// Of the mean time between two requests: what is less counts as this.
const LEAST_PART: f64 = 0.001;
/// As a power of two.
const MOST_STEPS: u32 = 8;

/// When requests are made and when they end, in order.
fn changes(workload: &Workload) -> impl Iterator<Item = (Instant, bool)> {
    in_order(&workload.requests, |number, request| {
        if workload.nested.contains_key(&number) {
            return [None, None];
        }
        // Each ends after it was made, even if that took no time.
        let least = request.asked + Duration::from_nanos(1);
        let ended = request.ended().map(|at| (at.max(least), false));
        [Some((request.asked, true)), ended]
    })
}
