//! By when something has to be done, on the runtime's clock, which a test may have stopped.

use std::future::Future;
use std::io;
use std::time::Duration;

use cenote_core::error::{ConnectionError, Stage};
use cenote_shell::connection::{self, Deadline, Settings};
use tokio::time::{Instant, timeout_at};

use crate::connector::Target;

#[derive(Clone, Copy, Debug)]
pub(super) struct Limit(connection::Limit);

impl Limit {
    /// For opening a connection, TLS included.
    pub(super) fn of(target: &Target, settings: &Settings) -> Self {
        Self(settings.opening(now(), target.deadline.map(Instant::into_std)))
    }

    /// The same, and for what is said on it then.
    pub(super) fn and_each_command(self, target: &Target, settings: &Settings) -> Self {
        let each = settings.each_command(target.deadline.map(Instant::into_std));
        Self(self.0.and_each_command(each))
    }

    /// For a connection that nobody waits for with a deadline.
    pub(super) fn of_monitor(settings: &Settings) -> Self {
        Self(settings.opening(now(), None))
    }

    /// This long for each wait.
    pub(super) fn each(each: Option<Duration>) -> Self {
        Self(connection::Limit::each(each))
    }

    /// For a command that begins now, and for its reply.
    pub(super) fn for_command(self) -> Self {
        Self(self.0.for_command(now))
    }

    /// What becomes of `work`, or after how long it was given up.
    pub(super) async fn hold<R>(self, work: impl Future<Output = R>) -> Result<R, Duration> {
        match self.0.next(now) {
            Some(Deadline { at, after }) => timeout_at(at.into(), work).await.map_err(|_| after),
            None => Ok(work.await),
        }
    }

    /// As [`hold`](Self::hold), for what fails as I/O does, at one stage of establishing.
    pub(super) async fn hold_at<R>(
        self,
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

pub(super) fn now() -> std::time::Instant {
    Instant::now().into_std()
}
