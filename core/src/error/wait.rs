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

/// With three digits.
pub(crate) fn rounded(time: Duration) -> Duration {
    let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let digits = nanos.checked_ilog10().unwrap_or_default();
    let unit = 10_u64.pow(digits.saturating_sub(2));
    Duration::from_nanos(nanos - nanos % unit)
}
