//! Times of a trace on the wall clock, as logs have them.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use cenote_core::pool::Instant;
use cenote_core::trace::TraceHeader;
use jiff::civil::{DateTime, Time};
use jiff::tz::Offset;
use jiff::{SignedDuration, Timestamp};

/// Converts between times of a trace and the wall clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// `None` if the trace has no wall-clock time.
    origin: Option<Timestamp>,
    /// The zone that is shown.
    offset: UtcOffset,
    /// The start of the trace.
    start: Instant,
}

impl Clock {
    /// The clock of a trace, shown with this offset from UTC. A trace with the origin 0, 1970, has no
    /// wall-clock time.
    pub fn new(header: &TraceHeader, offset: UtcOffset) -> Self {
        Self::from(header.origin, header.start, offset)
    }

    /// The same for a trace of any kind with this origin, which starts then.
    pub fn from(origin: i64, start: Instant, offset: UtcOffset) -> Self {
        let known = Some(origin).filter(|&origin| origin != 0);
        let origin = known.and_then(|origin| Timestamp::from_millisecond(origin).ok());
        Self { origin, offset, start }
    }

    /// The time of day with milliseconds, `03:07:12.684`; with the date on another day than that of the
    /// start. `None` without wall-clock time.
    pub fn time(&self, at: Instant) -> Option<String> {
        let now = self.local(at)?;
        let is_same_day = now.date() == self.local(self.start)?.date();
        let format = if is_same_day { "%H:%M:%S%.3f" } else { "%Y-%m-%d %H:%M:%S%.3f" };
        Some(now.strftime(format).to_string())
    }

    /// The time of day, or without wall-clock time the seconds since the origin.
    pub fn short(&self, at: Instant) -> String {
        self.time(at).unwrap_or_else(|| format!("{:.3} s", seconds(at)))
    }

    /// Both: `03:07:12.684 (0.684 s)`; without wall-clock time only the seconds.
    pub fn both(&self, at: Instant) -> String {
        let seconds = format!("{:.6} s", seconds(at));
        self.time(at).map_or(seconds.clone(), |time| format!("{time} ({seconds})"))
    }

    /// The zone in which times are shown.
    pub fn utc_offset(&self) -> UtcOffset {
        self.offset
    }

    /// The date and the time as in ISO 8601, in UTC.
    pub fn iso(&self, at: Instant) -> Option<String> {
        let utc = Offset::UTC.to_datetime(self.timestamp(at)?);
        Some(utc.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string())
    }

    /// The date and the time of the start, in whole seconds, with the zone.
    pub fn beginning(&self) -> Option<String> {
        let start = self.local(self.start)?;
        Some(format!("{} {}", start.strftime("%Y-%m-%d %H:%M:%S"), self.offset))
    }

    /// The time in nanoseconds since the origin, 0 for what is before it.
    ///
    /// A time of day is that of the day on which the trace starts; if the trace starts in the evening,
    /// times more than twelve hours before its start are those of the next day.
    ///
    /// # Errors
    ///
    /// If the trace has no wall-clock time, and one is given.
    pub fn resolve(&self, time: TimePoint) -> Result<u64, NoClock> {
        let wall = match (time, self.local(self.start)) {
            (TimePoint::Seconds(nanos), _) => return Ok(nanos),
            (TimePoint::OfDay(_) | TimePoint::Date(_), None) => return Err(NoClock(time)),
            (TimePoint::OfDay(time), Some(start)) => {
                let same = start.date().to_datetime(time);
                let is_next = start.duration_since(same) > SignedDuration::from_hours(12);
                if is_next { same.saturating_add(SignedDuration::from_hours(24)) } else { same }
            }
            (TimePoint::Date(date), Some(_)) => date,
        };
        let nanos = |time: Timestamp| time.as_nanosecond();
        let wall = self.offset.offset().to_timestamp(wall).map_or(i128::MAX, nanos);
        let since = wall.saturating_sub(self.origin.map_or(0, nanos));
        Ok(u64::try_from(since.max(0)).unwrap_or(u64::MAX))
    }

    fn timestamp(&self, at: Instant) -> Option<Timestamp> {
        let since = Duration::from_nanos(at.as_nanos());
        self.origin?.checked_add(since).ok()
    }

    /// In the zone that is shown.
    fn local(&self, at: Instant) -> Option<DateTime> {
        Some(self.offset.offset().to_datetime(self.timestamp(at)?))
    }
}

/// A point in time as it is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimePoint {
    /// Nanoseconds since the origin of the trace: `1.5`, `1.5s`.
    Seconds(u64),
    /// `03:07:12.5`, `03:07`.
    OfDay(Time),
    /// In the zone that is shown: `2026-01-01T03:07:12.5`, with or without a `Z`.
    Date(DateTime),
}

/// A wall-clock time for a trace that has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoClock(TimePoint);

impl fmt::Display for NoClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the trace does not say when it was recorded, so `{}` means nothing in it: give \
             seconds since its start",
            self.0
        )
    }
}

impl std::error::Error for NoClock {}

impl fmt::Display for TimePoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Seconds(nanos) => write!(f, "{}", *nanos as f64 / 1e9),
            Self::OfDay(time) => write!(f, "{}", time.strftime("%H:%M:%S%.3f")),
            Self::Date(time) => write!(f, "{}", time.strftime("%Y-%m-%dT%H:%M:%S%.3f")),
        }
    }
}

impl FromStr for TimePoint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = if text.contains(['+', '[']) {
            None // An offset of its own, or a zone.
        } else if text.contains(['T', ' ']) {
            text.trim_end_matches('Z').parse().ok().map(Self::Date)
        } else if text.contains(':') {
            text.parse().ok().map(Self::OfDay)
        } else {
            nanos(text).map(Self::Seconds)
        };
        parsed.ok_or_else(|| {
            format!(
                "`{text}` is no time: write seconds since the start (1.5), a time of day (03:07:12) \
                 or a date with it (2026-01-01T03:07:12)"
            )
        })
    }
}

/// An offset from UTC: `+02:00`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UtcOffset {
    minutes: i32,
}

impl UtcOffset {
    /// The minutes by which times are ahead of UTC.
    pub fn minutes(self) -> i32 {
        self.minutes
    }

    fn offset(self) -> Offset {
        Offset::from_seconds(self.minutes * 60).unwrap_or(Offset::UTC)
    }
}

impl fmt::Display for UtcOffset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sign, minutes) = (if self.minutes < 0 { '-' } else { '+' }, self.minutes.abs());
        match minutes {
            0 => f.write_str("UTC"),
            _ => write!(f, "{sign}{:02}:{:02}", minutes / 60, minutes % 60),
        }
    }
}

impl FromStr for UtcOffset {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = || {
            let (sign, rest) = match text.strip_prefix('-') {
                Some(rest) => (-1, rest),
                None => (1, text.strip_prefix('+')?),
            };
            let (hours, minutes) = rest.split_once(':').unwrap_or((rest, "0"));
            let (hours, minutes) = (number(hours)?, number(minutes)?);
            (hours <= 14 && minutes < 60).then(|| sign * (hours * 60 + minutes))
        };
        let minutes =
            if text == "Z" { Some(0) } else { parsed().and_then(|it| it.try_into().ok()) };
        let problem = || format!("`{text}` is no offset from UTC: write +02:00, -05:30 or Z");
        minutes.map(|minutes| Self { minutes }).ok_or_else(problem)
    }
}

/// Parses seconds, with or without an `s` and decimals, as nanoseconds.
pub fn nanos(text: &str) -> Option<u64> {
    let seconds: f64 = text.trim_end_matches('s').parse().ok()?;
    (0.0..=1e10).contains(&seconds).then(|| (seconds * 1e9).round() as u64)
}

fn seconds(at: Instant) -> f64 {
    at.as_nanos() as f64 / 1e9
}

fn number(text: &str) -> Option<i64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(origin: i64, offset: &str) -> Clock {
        let offset: UtcOffset = offset.parse().expect("an offset");
        Clock::from(origin, Instant::from_nanos(2_000_000_000), offset)
    }

    /// 2026-01-01 03:07:00 UTC.
    const NIGHT: i64 = 1_767_236_820_000;

    #[test]
    fn times_are_shown_on_the_wall_clock() {
        let at = Instant::from_nanos(12_684_500_000);
        assert_eq!(clock(NIGHT, "Z").both(at), "03:07:12.684 (12.684500 s)");
        assert_eq!(clock(NIGHT, "+02:00").short(at), "05:07:12.684");
        assert_eq!(clock(0, "Z").both(at), "12.684500 s");
        assert_eq!(clock(NIGHT, "+02:00").iso(at).as_deref(), Some("2026-01-01T03:07:12.684Z"));
        let clock = clock(NIGHT, "-03:30");
        assert_eq!(clock.beginning().as_deref(), Some("2025-12-31 23:37:02 -03:30"));
        let next = Instant::from_nanos(3_600_000_000_000);
        assert_eq!(clock.time(next).as_deref(), Some("2026-01-01 00:37:00.000"));
    }

    #[test]
    fn typed_times_are_found() {
        let nanos = |clock: Clock, text: &str| {
            let time: TimePoint = text.parse().expect("a time");
            assert_eq!(time.to_string().parse(), Ok(time), "{text}");
            clock.resolve(time)
        };
        let night = clock(NIGHT, "Z");
        for (text, expected) in [
            ("1.5", 1_500_000_000),
            ("03:07:12.5", 12_500_000_000),
            ("03:08", 60_000_000_000),
            ("2026-01-01T03:07:12Z", 12_000_000_000),
            ("2026-01-01 03:07:12", 12_000_000_000),
            ("03:06", 0),
        ] {
            assert_eq!(nanos(night, text), Ok(expected), "{text}");
        }
        assert_eq!(nanos(clock(NIGHT, "+01:00"), "04:07:12"), Ok(12_000_000_000));
        // 23:37 in this zone: a quarter past midnight is the next day's.
        assert_eq!(nanos(clock(NIGHT, "-03:30"), "00:15"), Ok(38 * 60 * 1_000_000_000));
        assert!(nanos(clock(0, "Z"), "03:07").is_err());
        for text in [
            "",
            "noon",
            "25:00",
            "03:60",
            "03:07:61",
            "03:07:-1",
            "2026-02-30T03:07",
            "-1",
            "2026-01-01T03:07:12+02:00",
        ] {
            assert!(text.parse::<TimePoint>().is_err(), "{text}");
        }
        for text in ["2", "+15", "+01:60", "+x", "east"] {
            assert!(text.parse::<UtcOffset>().is_err(), "{text}");
        }
    }
}
