//! A pool with another order, for comparison: requests are shed on standing delay as in Cenote, but
//! while the delay stands the newest request is served first. Here, no connection fails.

use std::collections::VecDeque;
use std::time::Duration;

use cenote_core::pool::{Action, CheckOutError, ConnId, Input, Instant, PoolOptions};

use super::comparison::{Supported, start_establish};
use super::fleet::{Ask, Modelled, Opened};

pub(super) struct NewestFirstPool {
    most: u64,
    idle: Vec<(ConnId, Opened)>,
    /// Each with the time at which it came, oldest first.
    waiting: VecDeque<(Instant, Ask)>,
    /// Since when the oldest has waited for the target or longer.
    standing_since: Option<Instant>,
    made: u64,
}

impl NewestFirstPool {
    pub(super) fn new(options: &PoolOptions) -> Self {
        let most = options.max_pool_size.unwrap_or(PoolOptions::DEFAULT_MAX_POOL_SIZE).into();
        let (idle, waiting) = (Vec::new(), VecDeque::new());
        Self { most, idle, waiting, standing_since: None, made: 0 }
    }

    pub(super) fn total(&self) -> usize {
        self.made as usize
    }

    /// # Panics
    ///
    /// If an input is not supported by this pool.
    pub(super) fn handle(
        &mut self,
        now: Instant,
        input: &Input<Modelled>,
        actions: &mut Vec<Action<Modelled>>,
    ) {
        self.shed(now, actions);
        match Supported::of(input) {
            Supported::Ready => {}
            Supported::Request(waiter) => {
                self.waiting.push_back((now, waiter));
                self.open(actions);
            }
            Supported::Established(id, conn) | Supported::CheckedIn(id, conn) => {
                self.idle.push((id, conn));
            }
        }
        self.serve(now, actions);
    }

    /// One connection for each of the first requests.
    fn open(&mut self, actions: &mut Vec<Action<Modelled>>) {
        if self.made < self.most {
            self.made += 1;
            actions.push(start_establish(self.made));
        }
    }

    fn serve(&mut self, now: Instant, actions: &mut Vec<Action<Modelled>>) {
        while let Some(idle) = self.idle.pop() {
            let is_newest_first = self.standing_since.is_some();
            let next =
                if is_newest_first { self.waiting.pop_back() } else { self.waiting.pop_front() };
            let Some((_, waiter)) = next else { return self.idle.push(idle) };
            actions.push(Action::Deliver { waiter, outcome: Ok(idle) });
            self.note_delay(now);
        }
    }

    fn shed(&mut self, now: Instant, actions: &mut Vec<Action<Modelled>>) {
        self.note_delay(now);
        if self.standing_since.is_none_or(|since| since + INTERVAL > now) {
            return;
        }
        while self.waiting.front().is_some_and(|(came, _)| *came + TARGET < now) {
            let Some((_, waiter)) = self.waiting.pop_front() else { break };
            // For the callers of a study this error is the same.
            let outcome = Err(CheckOutError::WaitQueueFull { max: 0 });
            actions.push(Action::Deliver { waiter, outcome });
        }
        self.standing_since = None;
    }

    fn note_delay(&mut self, now: Instant) {
        let reached = self.waiting.front().map(|(came, _)| *came + TARGET);
        let reached = reached.filter(|&at| at <= now);
        self.standing_since = reached.map(|at| self.standing_since.unwrap_or(at));
    }
}

const TARGET: Duration = PoolOptions::DEFAULT_CODEL_TARGET;
const INTERVAL: Duration = PoolOptions::DEFAULT_CODEL_INTERVAL;
