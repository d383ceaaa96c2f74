//! The callers, and how they react to failures.

use std::time::Duration;

use super::due::Due;
use super::{Ask, Fleet};

/// How callers arrive.
#[derive(Clone, Copy, Debug)]
pub(in crate::study) enum Callers {
    /// This many per client; each asks again some time after its answer. They start within
    /// `spread`.
    Each { callers: u32, think: Duration, spread: Duration },
    /// Independently of answers: this rate per second, by the time since the beginning.
    Flow { per_second: fn(Duration) -> u64 },
    /// This many at once, repeatedly.
    Bursts { size: u32, every: Duration },
}

/// In each interval of this length, a caller arrives or not. This approximates a Poisson process
/// without logarithms, whose results are not exactly the same on all platforms.
const MOMENT: Duration = Duration::from_micros(100);

impl Fleet<'_> {
    pub(super) fn callers_begin(&mut self) {
        match self.setup.callers {
            Callers::Each { callers, spread, .. } => {
                for client in 0..self.setup.clients {
                    for caller in 0..callers {
                        let after = self.below(spread);
                        let asked = self.now + after;
                        let ask = Ask { caller, asked, attempt: 0 };
                        self.plan(after, Due::Ask { client, ask });
                    }
                }
            }
            Callers::Flow { .. } | Callers::Bursts { .. } => self.plan(MOMENT, Due::Arrive),
        }
    }

    pub(super) fn arrive(&mut self) {
        match self.setup.callers {
            Callers::Each { .. } => {}
            Callers::Flow { per_second } => {
                let in_a_second = Duration::from_secs(1).as_micros() / MOMENT.as_micros();
                if self.random.below(in_a_second as u64) < per_second(self.since_begin()) {
                    self.comes(0);
                }
                self.plan(MOMENT, Due::Arrive);
            }
            Callers::Bursts { size, every } => {
                (0..size).for_each(|caller| self.comes(caller));
                self.plan(every, Due::Arrive);
            }
        }
    }

    fn comes(&mut self, caller: u32) {
        let client = self.random.below(self.setup.clients.into()) as u32;
        let ask = Ask { caller, asked: self.now, attempt: 0 };
        self.ask(client, ask);
    }

    /// Schedules the next request of a caller.
    pub(super) fn thinks(&mut self, client: u32, caller: u32) {
        if let Callers::Each { think, .. } = self.setup.callers {
            let after = self.below(think * 2);
            let ask = Ask { caller, asked: self.now + after, attempt: 0 };
            self.plan(after, Due::Ask { client, ask });
        }
    }

    /// Retries as drivers do: a limited number of times, after a pause in case of overload.
    pub(super) fn again_or_failed(&mut self, client: u32, ask: Ask, most: u32) {
        if ask.attempt >= most {
            return self.failed(client, ask);
        }
        let attempt = ask.attempt + 1;
        let pause = if self.setup.has_labels {
            self.below((Duration::from_millis(100) * (1 << attempt)).min(Duration::from_secs(10)))
        } else {
            Duration::ZERO
        };
        self.plan(pause, Due::Ask { client, ask: Ask { attempt, ..ask } });
    }

    pub(super) fn failed(&mut self, client: u32, ask: Ask) {
        self.log.failures.push(self.since_begin());
        self.thinks(client, ask.caller);
    }

    pub(super) fn below(&mut self, limit: Duration) -> Duration {
        Duration::from_nanos(self.random.below(limit.as_nanos() as u64 + 1))
    }
}
