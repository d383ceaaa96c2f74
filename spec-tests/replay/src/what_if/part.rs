//! A part of a trace, as if it began and ended there.

use std::time::Duration;

use cenote_core::pool::{Instant, PoolOptions};

use super::followers::Followers;
use super::stalls::Stalls;
use super::workload::Workload;
use super::world::Warm;

impl Workload {
    /// The part with the most requests of that length, as if the trace began and ended there; `None` if the trace is not
    /// longer.
    pub fn busiest(&self, length: Duration) -> Option<Self> {
        if self.duration() <= length {
            return None;
        }
        let counted = self.counted();
        let within = |from: Instant| {
            let before = |at| counted.partition_point(|request| request.asked < at);
            before(from + length) - before(from)
        };
        let latest = Instant::from_nanos(self.end.as_nanos() - length.as_nanos() as u64);
        let begins = counted.iter().map(|request| request.asked).take_while(|&at| at <= latest);
        let mut busiest = (self.start, within(self.start));
        for from in begins {
            let requests = within(from);
            if requests > busiest.1 {
                busiest = (from, requests);
            }
        }
        Some(self.part(busiest.0, busiest.0 + length))
    }

    /// As if the trace began and ended then. The pool is warm, as far as it was when the part begins.
    fn part(&self, start: Instant, end: Instant) -> Self {
        let mut held = Vec::new();
        let mut rest = Vec::new();
        let mut limits = self.limits.clone();
        for (number, &(mut request)) in (0..).zip(&self.requests) {
            if request.asked >= end || request.ended().is_some_and(|at| at <= start) {
                continue;
            }
            let is_held = request.was_served() && request.answered() <= start;
            if request.asked < start {
                request.begin_at(start, &mut limits);
                if is_held { held.push((number, request)) } else { rest.push((number, request)) }
            } else {
                rest.push((number, request));
            }
        }
        let opened = self.openings.iter().filter(|(at, _)| *at < start).count() as u32;
        let before = self.warm.held.len() as u32 + self.warm.idle + opened;
        let most = self.options.max_pool_size.unwrap_or(PoolOptions::DEFAULT_MAX_POOL_SIZE);
        let before = if most == 0 { before } else { before.min(most) };
        let warm = Warm {
            is_ready: true,
            idle: before.saturating_sub(held.len() as u32),
            held: (0..held.len() as u32).collect(),
        };
        held.append(&mut rest);
        let failure =
            |(new, (old, _)): (u32, &(u32, _))| Some((new, self.failures.get(old)?.clone()));
        let part = Self {
            source: self.source.clone(),
            start,
            end,
            options: self.options.clone(),
            warm,
            failures: (0..).zip(&held).filter_map(failure).collect(),
            requests: held.into_iter().map(|(_, request)| request).collect(),
            limits,
            openings: self.openings.clone(),
            events: self
                .events
                .iter()
                .filter(|(at, _)| (start..end).contains(at))
                .cloned()
                .collect(),
            clears: self.clears.clone(),
            recorded: self.recorded.clone(),
            leaked: self.leaked,
            unended: self.unended,
            leaks: None,
            stalls: Stalls::default(),
            retries: Followers::new(),
            nested: Followers::new(),
            tick: self.tick,
            lost: self.lost,
        };
        part.examined()
    }
}
