use core::fmt;
use core::time::Duration;

/// How long a check-out waited until its caller had the answer, and what limited that.
///
/// `Display` is, for example, `waited 203ms, waitQueueTimeoutMS=200`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wait {
    /// From the request to the answer; zero if there was an answer at once.
    pub waited: Duration,
    /// The limit; `None` is without limit.
    pub limit: Option<WaitLimit>,
}

/// What limits the wait of a check-out, and to how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WaitLimit {
    /// `waitQueueTimeoutMS`. It does not cover the establishment of a connection.
    WaitQueueTimeout(Duration),
    /// The deadline of the caller, which covers that, too: how long after the request.
    Deadline(Duration),
}

impl Wait {
    /// With the limit if `is_limit`.
    pub(super) fn limited_by(self, is_limit: impl FnOnce(&WaitLimit) -> bool) -> Self {
        Self { limit: self.limit.filter(is_limit), ..self }
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.waited.is_zero() {
            return f.write_str("at once");
        }
        write!(f, "waited {:?}", rounded(self.waited))?;
        match self.limit {
            Some(WaitLimit::WaitQueueTimeout(limit)) => {
                write!(f, ", waitQueueTimeoutMS={}", limit.as_secs_f64() * 1e3)
            }
            Some(WaitLimit::Deadline(limit)) => {
                write!(f, ", deadline after {:?}", rounded(limit))
            }
            None => Ok(()),
        }
    }
}

/// To milliseconds, and short times to microseconds.
fn rounded(time: Duration) -> Duration {
    let unit = if time < Duration::from_millis(10) { 1_000 } else { 1_000_000 };
    time - Duration::from_nanos(u64::from(time.subsec_nanos() % unit))
}
