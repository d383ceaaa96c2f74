//! By when something has to be done, on an event loop.

use std::future::Future;
use std::io;
use std::time::{Duration, Instant};

use cenote_core::error::{ConnectionError, Stage};
use cenote_shell::connection::{self, Deadline, Settings};

use crate::connector::Target;
use crate::event_loop::{EventLoop, timeout_at};

#[derive(Clone, Debug)]
pub(super) struct Limit {
    event_loop: EventLoop,
    limit: connection::Limit,
}

impl Limit {
    /// For opening a connection, TLS included.
    pub(super) fn of(target: &Target, settings: &Settings) -> Self {
        let limit = settings.opening(Instant::now(), target.deadline);
        Self { event_loop: target.event_loop.clone(), limit }
    }

    /// The same, and for what is said on it then.
    pub(super) fn and_each_command(self, target: &Target, settings: &Settings) -> Self {
        let each = settings.each_command(target.deadline);
        Self { limit: self.limit.and_each_command(each), ..self }
    }

    /// For a connection that nobody waits for with a deadline.
    pub(super) fn of_monitor(event_loop: &EventLoop, settings: &Settings) -> Self {
        let limit = settings.opening(Instant::now(), None);
        Self { event_loop: event_loop.clone(), limit }
    }

    /// For a command that begins now, and for its reply.
    pub(super) fn for_command(&self) -> Self {
        let limit = self.limit.for_command(Instant::now);
        Self { event_loop: self.event_loop.clone(), limit }
    }

    /// Where whatever is waited for goes on.
    pub(super) fn event_loop(&self) -> &EventLoop {
        &self.event_loop
    }

    /// What becomes of `work`, or after how long it was given up.
    pub(super) async fn hold<R>(&self, work: impl Future<Output = R>) -> Result<R, Duration> {
        match self.limit.next(Instant::now) {
            Some(Deadline { at, after }) => {
                timeout_at(&self.event_loop, at, work).await.ok_or(after)
            }
            None => Ok(work.await),
        }
    }

    /// As [`hold`](Self::hold), for what fails as I/O does, at one stage of establishing.
    pub(super) async fn hold_at<R>(
        &self,
        stage: Stage,
        work: impl Future<Output = io::Result<R>>,
    ) -> Result<R, ConnectionError> {
        match self.hold(work).await {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(error)) => Err(ConnectionError::network(stage, error)),
            Err(after) => Err(ConnectionError::timeout(stage, after)),
        }
    }
}
