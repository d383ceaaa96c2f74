//! Whether callers come back after their requests, or come whatever happens to others.

use std::str::FromStr;
use std::time::Duration;

use cenote_core::pool::Instant;

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
    /// between windows of the trace.
    pub fn of(workload: &Workload) -> Self {
        let windows = Windows::of(workload);
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
        let better = if best > Self::EVIDENCE { Loop::Closed } else { Loop::Open };
        Self { better, callers, evidence: best }
    }
}

/// How many requests had not ended when each was made, and on average.
struct Windows {
    /// For each window: the number at each request, and the average over time.
    windows: Vec<(Vec<u64>, f64)>,
    most: u64,
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
        let mut windows = vec![(Vec::new(), 0.0); count];
        let (mut now, mut outstanding, mut most) = (workload.start, 0_u64, 0);
        for (at, is_made) in changes(workload) {
            while now < at {
                let place =
                    (now.saturating_since(workload.start).as_nanos() as u64 / length) as usize;
                let place = place.min(count - 1);
                let begins_next = workload.start.as_nanos() + (place as u64 + 1) * length;
                let until =
                    if place + 1 == count { at } else { at.min(Instant::from_nanos(begins_next)) };
                windows[place].1 +=
                    until.saturating_since(now).as_nanos() as f64 * outstanding as f64;
                now = until;
            }
            let place = (at.saturating_since(workload.start).as_nanos() as u64 / length) as usize;
            if is_made {
                windows[place.min(count - 1)].0.push(outstanding);
                outstanding += 1;
                most = most.max(outstanding);
            } else {
                outstanding -= 1;
            }
        }
        for window in &mut windows {
            window.1 /= length as f64;
        }
        Self { windows, most }
    }

    /// The logarithm of the ratio of likelihoods of a closed loop of this many callers and an open one.
    fn evidence(&self, callers: u64) -> f64 {
        let callers = callers as f64;
        let of = |(made, mean): &(Vec<u64>, f64)| {
            let rates: f64 = made.iter().map(|&n| (callers - n as f64).ln()).sum();
            rates - made.len() as f64 * (callers - mean).ln()
        };
        let mut evidence: Vec<_> =
            self.windows.iter().filter(|(made, _)| !made.is_empty()).map(of).collect();
        evidence.sort_by(f64::total_cmp);
        let counted = evidence.len() - evidence.len() / TRIMMED;
        evidence[..counted].iter().sum()
    }
}

/// When requests are made and when they end, in order.
fn changes(workload: &Workload) -> Vec<(Instant, bool)> {
    let mut changes = Vec::with_capacity(workload.requests.len() * 2);
    for request in &workload.requests {
        changes.push((request.asked, true));
        // Each ends after it was made, even if that took no time.
        let least = request.asked + Duration::from_nanos(1);
        changes.extend(request.ended().map(|at| (at.max(least), false)));
    }
    changes.sort_unstable();
    changes
}
