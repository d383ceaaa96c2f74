//! Trying an operation again when the system has too much to do: client backpressure.

use core::time::Duration;

use super::Selector;
use crate::address::ServerAddress;
use crate::error::label::{RETRYABLE_ERROR, SYSTEM_OVERLOADED_ERROR};
use crate::error::{CommandError, ConnectionError, PoolError, RetryWrites};
use crate::number;
use crate::uri::RetryOptions;

/// The attempts of one operation, as far as overloads make them fail: whether there is another one, after which pause,
/// and which servers it avoids. A driver has one for each operation; it runs the attempts, and retries for other reasons
/// are its own. Neither blocks nor reads a clock.
///
/// ```
/// use std::time::Duration;
///
/// use cenote_core::client::{OverloadRetries, Selector};
/// use cenote_core::error::{ConnectionError, Stage};
/// use cenote_core::uri::RetryOptions;
///
/// let mut retries = OverloadRetries::new(&RetryOptions::default());
/// let server = "db.example.com".parse()?;
/// // The first attempt fails: the server closes the connection in its handshake.
/// let error = ConnectionError::network(Stage::Hello, "closed");
/// let pause = retries.again_after(&error, &server, u64::MAX / 2).expect("a second attempt");
/// assert!(pause < Duration::from_millis(100));
/// // The driver checks its connection in, waits, and selects a server.
/// let selector = retries.selector(&Selector::Primary);
/// # assert_eq!(selector, Selector::Primary);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
// BP-03, BP-04, BP-05, ER-42
#[derive(Clone, Debug)]
pub struct OverloadRetries {
    max: u32,
    retargets: bool,
    done: u32,
    avoided: Vec<ServerAddress>,
}

impl OverloadRetries {
    /// Before the second attempt, at most: twice this; each further pause may be twice as long, unless the server names
    /// another base by `baseBackoffMS`. 100 ms.
    pub const BACKOFF: Duration = Duration::from_millis(100);
    /// The longest pause: 10 s.
    pub const LONGEST_BACKOFF: Duration = Duration::from_secs(10);
    /// `maxAdaptiveRetries` where the connection string has none.
    const MAX: u32 = 2;

    /// For an operation that begins: `maxAdaptiveRetries` and `enableOverloadRetargeting`.
    #[must_use]
    pub fn new(options: &RetryOptions) -> Self {
        Self {
            max: options.max_adaptive_retries.unwrap_or(Self::MAX),
            retargets: options.enable_overload_retargeting == Some(true),
            done: 0,
            avoided: Vec::new(),
        }
    }

    /// An attempt at this server has failed. Returns how long to wait before the next one, without a connection; `None`
    /// if the error is for the caller: it is no overload, or there were as many attempts as allowed. `draw` is a random
    /// number, by which the pause is a part of the longest.
    pub fn again_after(
        &mut self,
        error: &ConnectionError,
        server: &ServerAddress,
        draw: u64,
    ) -> Option<Duration> {
        let is_overload = is_overload(error.labels(RetryWrites::Disabled));
        self.again(is_overload, base(error), server, draw)
    }

    /// The same for an attempt that got no connection. A wait queue that is full, or sheds, is an overload, too.
    pub fn again_after_check_out(&mut self, error: &PoolError, draw: u64) -> Option<Duration> {
        let is_overload = is_overload(error.labels(RetryWrites::Disabled));
        self.again(is_overload, error.cause().map_or(Self::BACKOFF, base), error.address(), draw)
    }

    fn again(
        &mut self,
        is_overload: bool,
        base: Duration,
        server: &ServerAddress,
        draw: u64,
    ) -> Option<Duration> {
        if !is_overload || self.done >= self.max {
            return None;
        }
        self.done += 1;
        if self.retargets && !self.avoided.contains(server) {
            self.avoided.push(server.clone());
        }
        let factor = 2_u32.saturating_pow(self.done);
        let longest = base.saturating_mul(factor).min(Self::LONGEST_BACKOFF);
        let part = longest.as_nanos().saturating_mul(u128::from(draw)) >> u64::BITS;
        Some(Duration::from_nanos(u64::try_from(part).unwrap_or(u64::MAX)))
    }

    /// The driver has tried again for another reason, such as a network error: that attempt counts, too.
    pub const fn count_other(&mut self) {
        self.done = self.done.saturating_add(1);
    }

    /// By what to select the server of the next attempt: with `enableOverloadRetargeting` it avoids those that were
    /// overloaded.
    #[must_use]
    pub fn selector(&self, selector: &Selector) -> Selector {
        selector.clone().avoiding(self.avoided.iter().cloned())
    }
}

fn is_overload<'a>(labels: impl Iterator<Item = &'a str>) -> bool {
    let labels: Vec<_> = labels.collect();
    labels.contains(&SYSTEM_OVERLOADED_ERROR) && labels.contains(&RETRYABLE_ERROR)
}

/// What the server asks for, if that is positive.
// BP-02
fn base(error: &ConnectionError) -> Duration {
    let reply = error.command_error().map(CommandError::reply);
    let field = reply.and_then(|reply| reply.get("baseBackoffMS").ok().flatten());
    let asked = field.and_then(number::as_i64).and_then(|ms| u64::try_from(ms).ok());
    asked.filter(|ms| *ms > 0).map_or(OverloadRetries::BACKOFF, Duration::from_millis)
}

#[cfg(test)]
mod tests {
    use core::time::Duration;
    use std::sync::Arc;

    use bson::rawdoc;

    use super::OverloadRetries;
    use crate::client::Selector;
    use crate::error::{CommandError, ConnectionError, PoolError, Stage};
    use crate::pool::CheckOutError;
    use crate::uri::{ConnectionString, RetryOptions};

    fn overloaded(base: i64) -> ConnectionError {
        let reply = rawdoc! {
            "ok": 0, "code": 462, "errmsg": "busy", "baseBackoffMS": base,
            "errorLabels": ["SystemOverloadedError", "RetryableError"],
        };
        let refused = CommandError::from_reply(&reply).expect("an error");
        ConnectionError::command(Stage::Operation, refused)
    }

    // BP-03, BP-04, ER-42
    #[test]
    fn pauses_grow_and_end() {
        let uri = ConnectionString::parse("mongodb://db/?maxAdaptiveRetries=8").unwrap();
        let server = "db".parse().unwrap();
        let mut retries = OverloadRetries::new(&uri.retries);
        let pauses: Vec<_> = (0..9)
            .map(|_| retries.again_after(&overloaded(0), &server, u64::MAX).map(round))
            .collect();
        let expected = [200, 400, 800, 1600, 3200, 6400, 10_000, 10_000].map(Some);
        assert_eq!(pauses, [&expected[..], &[None]].concat());
        let mut retries = OverloadRetries::new(&RetryOptions::default());
        let half = 1 << 63;
        let pauses = [(20, 20), (-5, 200)];
        for (base, expected) in pauses {
            let pause = retries.again_after(&overloaded(base), &server, half);
            assert_eq!(pause, Some(Duration::from_millis(expected)));
        }
        assert_eq!(retries.again_after(&overloaded(0), &server, 0), None, "by default two");
        let mut retries = OverloadRetries::new(&RetryOptions::default());
        retries.count_other();
        let pause = retries.again_after(&overloaded(0), &server, half);
        assert_eq!(pause, Some(Duration::from_millis(200)));
        assert_eq!(
            retries.again_after(&overloaded(0), &server, 0),
            None,
            "one was for another reason"
        );
    }

    fn round(pause: Duration) -> u128 {
        (pause + Duration::from_nanos(1)).as_millis()
    }

    // BP-05
    #[test]
    fn only_overloads_count() {
        let uri = ConnectionString::parse("mongodb://db/?enableOverloadRetargeting=true").unwrap();
        let server: crate::address::ServerAddress = "db".parse().unwrap();
        let lost = ConnectionError::network(Stage::Operation, "reset");
        for (options, avoided) in
            [(&uri.retries, vec![server.clone()]), (&RetryOptions::default(), Vec::new())]
        {
            let mut retries = OverloadRetries::new(options);
            assert_eq!(retries.again_after(&lost, &server, 0), None);
            assert_eq!(retries.selector(&Selector::Any), Selector::Any);
            assert_eq!(retries.again_after(&overloaded(0), &server, 0), Some(Duration::ZERO));
            assert_eq!(retries.selector(&Selector::Any), Selector::Any.avoiding(avoided));
        }
    }

    // BP-05
    #[test]
    fn a_check_out_can_fail_of_an_overload() {
        let uri = ConnectionString::parse("mongodb://db/?enableOverloadRetargeting=true").unwrap();
        let pause = |error| {
            let mut retries = OverloadRetries::new(&uri.retries);
            let error = PoolError::new(Arc::new("db".parse().unwrap()), error);
            let pause = retries.again_after_check_out(&error, u64::MAX).map(round);
            assert_eq!(retries.selector(&Selector::Any) != Selector::Any, pause.is_some());
            pause
        };
        let closed = ConnectionError::network(Stage::Hello, "closed");
        assert_eq!(pause(CheckOutError::EstablishFailed { cause: closed }), Some(200));
        let asked = CheckOutError::EstablishFailed { cause: overloaded(30) };
        assert_eq!(pause(asked), Some(60));
        assert_eq!(pause(CheckOutError::WaitQueueFull { max: 5 }), Some(200));
        assert_eq!(pause(CheckOutError::PoolClosed), None);
    }
}
