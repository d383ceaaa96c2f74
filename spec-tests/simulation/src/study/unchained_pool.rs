//! A pool with another rule, for comparison: the oldest request gets the first connection that is
//! established or checked in, whichever request started it. In CMAP, a request that started a
//! connection waits for that one. Here, nothing fails and no time passes.

use std::collections::VecDeque;

use cenote_core::pool::{Action, ConnId, Input, PoolOptions};

use super::comparison::{Supported, start_establish};
use super::fleet::{Ask, Modelled, Opened};

pub(super) struct UnchainedPool {
    most: usize,
    connecting: usize,
    idle: Vec<(ConnId, Opened)>,
    waiting: VecDeque<Ask>,
    starting: usize,
    total: usize,
    made: u64,
}

impl UnchainedPool {
    /// Creates a pool with the limits of the options.
    pub(super) fn new(options: &PoolOptions) -> Self {
        let limit = |limit: Option<u32>, default: u32| limit.unwrap_or(default) as usize;
        Self {
            most: limit(options.max_pool_size, PoolOptions::DEFAULT_MAX_POOL_SIZE),
            connecting: limit(options.max_connecting, PoolOptions::DEFAULT_MAX_CONNECTING),
            idle: Vec::new(),
            waiting: VecDeque::new(),
            starting: 0,
            total: 0,
            made: 0,
        }
    }

    pub(super) fn total(&self) -> usize {
        self.total
    }

    /// # Panics
    ///
    /// If an input is not supported by this pool.
    pub(super) fn handle(&mut self, input: &Input<Modelled>, actions: &mut Vec<Action<Modelled>>) {
        match Supported::of(input) {
            Supported::Ready => {}
            Supported::Request(waiter) => self.waiting.push_back(waiter),
            Supported::CheckedIn(id, conn) => self.idle.push((id, conn)),
            Supported::Established(id, conn) => {
                self.starting -= 1;
                self.idle.push((id, conn));
            }
        }
        self.serve(actions);
    }

    /// Serves the oldest requests with available connections, and starts connections for the
    /// others.
    fn serve(&mut self, actions: &mut Vec<Action<Modelled>>) {
        while let Some(&waiter) = self.waiting.front() {
            let Some(idle) = self.idle.pop() else { break };
            actions.push(Action::Deliver { waiter, outcome: Ok(idle) });
            self.waiting.pop_front();
        }
        let wanted = self.waiting.len().min(self.connecting);
        while self.starting < wanted && self.total < self.most {
            self.starting += 1;
            self.total += 1;
            self.made += 1;
            actions.push(start_establish(self.made));
        }
    }
}
