//! Plays the files of `server-selection/tests/rtt`: the average of round-trip times.
//!
//! The monitor of `cenote_core` gets the replies, in virtual time.

use std::time::Duration;

use bson::rawdoc;
use cenote_conform::{Document, Unreadable};
use cenote_core::monitor::MonitorOptions;
use cenote_core::uri::ServerMonitoringMode;
use serde::Deserialize;

use super::outcome::Outcome;
use super::target::Target;
use super::topology::Watched;

/// A file about the average of round-trip times, in milliseconds.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RoundTrips {
    avg_rtt_ms: Average,
    new_rtt_ms: f64,
    new_avg_rtt: f64,
}

/// The average so far.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Average {
    Known(f64),
    Unknown(Null),
}

#[derive(Debug, Deserialize)]
enum Null {
    #[serde(rename = "NULL")]
    Null,
}

/// Plays what was read from a file about the average of round-trip times.
///
/// # Errors
///
/// When it is not of this format.
pub(super) fn play_round_trips(document: &Document) -> Result<Vec<Outcome>, Unreadable> {
    let file: RoundTrips = document.parse()?;
    let mut options = MonitorOptions::default();
    options.mode = ServerMonitoringMode::Poll; // Two checks are two round trips.
    let mut watched = Watched::new(options);
    let known = match file.avg_rtt_ms {
        Average::Known(average) => Some(average),
        Average::Unknown(Null::Null) => None,
    };
    for milliseconds in known.into_iter().chain([file.new_rtt_ms]) {
        let takes = Duration::try_from_secs_f64(milliseconds / 1000.0).ok();
        let takes = takes.filter(|takes| *takes < Duration::from_secs(3600));
        let takes = takes.ok_or_else(|| {
            document.refuse_in("", &format!("{milliseconds} ms is no round-trip time"))
        })?;
        let reply = rawdoc! { "ok": 1, "helloOk": true };
        let checked = watched.check(&reply, takes);
        checked.map_err(|what| document.refuse_in("", &what))?;
    }
    let seen = watched.round_trip().map(|it| it.average.as_secs_f64() * 1000.0);
    // The monitor counts in whole nanoseconds.
    let is_right = seen.is_some_and(|seen| (seen - file.new_avg_rtt).abs() < 1e-5);
    let seen = || format!("expected {} ms, seen {seen:?}", file.new_avg_rtt);
    let verdict = is_right.then_some(()).ok_or_else(seen).into();
    let (path, target) = (document.path().to_owned(), Target::Core);
    let description = "the average after another round trip".to_owned();
    Ok(vec![Outcome { file: path, target, description, verdict }])
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use cenote_conform::Document;
    use serde_json::{Value, json};

    use super::play_round_trips;
    use crate::formats::Verdict;

    #[test]
    fn another_average_fails() {
        let verdict = |average: Value, new: f64| {
            let file = json!({ "avg_rtt_ms": average, "new_rtt_ms": 20.0, "new_avg_rtt": new });
            let document = Document::of(Path::new("some.json"), file);
            play_round_trips(&document).map(|played| played[0].verdict.clone()).ok()
        };
        assert_eq!(verdict(json!(10.0), 12.0), Some(Verdict::Passed));
        assert_eq!(verdict(json!("NULL"), 20.0), Some(Verdict::Passed));
        assert!(matches!(verdict(json!(10.0), 12.1), Some(Verdict::Failed(_))));
        assert_eq!(verdict(json!("none"), 20.0), None, "not of the format");
        for average in [json!(-5), json!(1e300), json!(4e6)] {
            assert_eq!(verdict(average, 20.0), None, "no time");
        }
    }
}
