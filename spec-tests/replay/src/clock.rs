//! Times of a trace on the wall clock, as logs have them.

use std::fmt;
use std::str::FromStr;

use cenote_core::pool::Instant;
use cenote_core::trace::TraceHeader;

/// Converts between times of a trace and the wall clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// Milliseconds since 1970 at the origin, in the zone that is shown; `None` if the trace has no
    /// wall-clock time.
    origin: Option<i64>,
    /// The zone.
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
        let origin = known.map(|origin| origin.saturating_add(offset.milliseconds()));
        Self { origin, offset, start }
    }

    /// The time of day with milliseconds, `03:07:12.684`; with the date on another day than that of the
    /// start. `None` without wall-clock time.
    pub fn time(&self, at: Instant) -> Option<String> {
        let (now, start) = (self.milliseconds(at)?, self.milliseconds(self.start)?);
        let time = time_of_day(now);
        let is_same_day = now.div_euclid(DAY) == start.div_euclid(DAY);
        Some(if is_same_day { time } else { format!("{} {time}", date(now)) })
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
        let utc = self.milliseconds(at)?.saturating_sub(self.offset.milliseconds());
        Some(format!("{}T{}Z", date(utc), time_of_day(utc)))
    }

    /// The date and the time of the start, in whole seconds, with the zone.
    pub fn beginning(&self) -> Option<String> {
        let start = self.milliseconds(self.start)?;
        let time = time_of_day(start);
        let (time, _) = time.split_once('.')?;
        Some(format!("{} {time} {}", date(start), self.offset))
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
        let start = self.milliseconds(self.start);
        let wall = match (time, start) {
            (TimePoint::Seconds(nanos), _) => return Ok(nanos),
            (TimePoint::OfDay(_) | TimePoint::Date(_), None) => return Err(NoClock(time)),
            (TimePoint::OfDay(nanos), Some(start)) => {
                let midnight = start.div_euclid(DAY) * DAY;
                let same = i128::from(midnight) * MILLI + i128::from(nanos);
                let half = (i128::from(start) - i128::from(DAY / 2)) * MILLI;
                if same < half { same + i128::from(DAY) * MILLI } else { same }
            }
            (TimePoint::Date(nanos), Some(_)) => nanos,
        };
        let origin = self.origin.map_or(0, i128::from) * MILLI;
        Ok(u64::try_from((wall - origin).max(0)).unwrap_or(u64::MAX))
    }

    fn milliseconds(&self, at: Instant) -> Option<i64> {
        let since = i64::try_from(at.as_nanos() / 1_000_000).unwrap_or(i64::MAX);
        Some(self.origin?.saturating_add(since))
    }
}

/// A point in time as it is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimePoint {
    /// Nanoseconds since the origin of the trace: `1.5`, `1.5s`.
    Seconds(u64),
    /// Nanoseconds since midnight: `03:07:12.5`, `03:07`.
    OfDay(u64),
    /// Nanoseconds since 1970 in the zone that is shown: `2026-01-01T03:07:12.5`, with or without a `Z`.
    Date(i128),
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
        let milliseconds = |nanos: i128| i64::try_from(nanos / MILLI).unwrap_or(i64::MAX);
        match self {
            Self::Seconds(nanos) => write!(f, "{}", *nanos as f64 / 1e9),
            Self::OfDay(nanos) => f.write_str(&time_of_day(milliseconds(i128::from(*nanos)))),
            Self::Date(nanos) => {
                let time = milliseconds(*nanos);
                write!(f, "{}T{}", date(time), time_of_day(time))
            }
        }
    }
}

impl FromStr for TimePoint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = if text.contains(':') {
            match text.split_once(['T', ' ']) {
                Some((date, time)) => {
                    day(date).zip(of_day(time.trim_end_matches('Z'))).map(|(day, time)| {
                        Self::Date(i128::from(day * DAY) * MILLI + i128::from(time))
                    })
                }
                None => of_day(text).map(Self::OfDay),
            }
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

    fn milliseconds(self) -> i64 {
        i64::from(self.minutes) * 60_000
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

/// `03:07`, `03:07:12` or `03:07:12.5` in nanoseconds since midnight.
fn of_day(text: &str) -> Option<u64> {
    let mut parts = text.splitn(3, ':');
    let (hours, minutes) = (number(parts.next()?)?, number(parts.next()?)?);
    let seconds = parts.next().unwrap_or("0");
    let begins_well = seconds.starts_with(|it: char| it.is_ascii_digit());
    let seconds = nanos(seconds).filter(|&nanos| begins_well && nanos < 60_000_000_000)?;
    let is_valid = hours < 24 && minutes < 60;
    is_valid.then(|| u64::try_from(hours * 60 + minutes).unwrap_or(0) * 60_000_000_000 + seconds)
}

/// `2026-01-01` in days since 1970.
fn day(text: &str) -> Option<i64> {
    let mut parts = text.splitn(3, '-');
    let [year, month, day] =
        [number(parts.next()?)?, number(parts.next()?)?, number(parts.next()?)?];
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let days = days_of(year, month, day);
    // Refuses a 31st of a shorter month.
    (civil(days) == (year, month, day)).then_some(days)
}

fn number(text: &str) -> Option<i64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

fn time_of_day(milliseconds: i64) -> String {
    let rest = milliseconds.rem_euclid(DAY);
    let (hours, minutes) = (rest / 3_600_000, rest / 60_000 % 60);
    format!("{hours:02}:{minutes:02}:{:02}.{:03}", rest / 1000 % 60, rest % 1000)
}

fn date(milliseconds: i64) -> String {
    let (year, month, day) = civil(milliseconds.div_euclid(DAY));
    format!("{year:04}-{month:02}-{day:02}")
}

/// The days from 1970 to a date of the Gregorian calendar. Years begin in March, so that the leap day
/// is the last of its year.
const fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let month = (month + 9) % 12;
    let days = year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    days + (month * 306 + 5) / 10 + day - 1 - MARCH_FIRST
}

/// The date of a day since 1970: year, month and day.
const fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + MARCH_FIRST;
    // The calendar repeats every 400 years.
    let (era, day) = (days.div_euclid(DAYS_OF_ERA), days.rem_euclid(DAYS_OF_ERA));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let is_next_year = month >= 10;
    let year = era * 400 + year + if is_next_year { 1 } else { 0 };
    (year, if is_next_year { month - 9 } else { month + 3 }, day)
}

const DAYS_OF_ERA: i64 = 146_097;
/// The first of March of year 0 in days before 1970.
const MARCH_FIRST: i64 = 719_468;
/// In milliseconds.
const DAY: i64 = 86_400_000;
/// In nanoseconds.
const MILLI: i128 = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(origin: i64, offset: &str) -> Clock {
        let offset: UtcOffset = offset.parse().expect("an offset");
        let known = Some(origin).filter(|&origin| origin != 0);
        let origin = known.map(|origin| origin + offset.milliseconds());
        Clock { origin, offset, start: Instant::from_nanos(2_000_000_000) }
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
        for text in ["", "noon", "25:00", "03:60", "03:07:61", "03:07:-1", "2026-02-30T03:07", "-1"]
        {
            assert!(text.parse::<TimePoint>().is_err(), "{text}");
        }
        for text in ["2", "+15", "+01:60", "+x", "east"] {
            assert!(text.parse::<UtcOffset>().is_err(), "{text}");
        }
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (days, text) in [
            (0, "1970-01-01"),
            (59, "1970-03-01"),
            (11_016, "2000-02-29"),
            (20_454, "2026-01-01"),
            (47_540, "2100-02-28"),
            (47_541, "2100-03-01"),
        ] {
            assert_eq!((date(days * DAY), day(text)), (text.to_owned(), Some(days)));
        }
    }
}
