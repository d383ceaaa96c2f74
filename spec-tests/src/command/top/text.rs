//! What is shown, as lines of text: the same on a screen and in a pipe.

use std::collections::{BTreeMap, BTreeSet};

use clap::ValueEnum as _;

use super::live::{Clear, Connection, Detail, Pool, Request};
use super::rates::Rates;
use super::table::{Column, Grid, sorted};
use crate::command::output::{milliseconds, printable, table};

/// A line, and how it looks on a screen.
pub(super) type Line = (Kind, String);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The heading of a list.
    Title,
    /// Something that an operator looks for.
    Trouble,
    Plain,
}

/// How many places are named that hold connections.
const PLACES_MAX: usize = 5;

/// The table of pools, for so many characters in a line.
pub(super) fn of_table(pools: &[Pool], rates: &Rates, column: Column, width: usize) -> String {
    let pools = sorted(pools, rates, column, false);
    let grid = Grid::new(&pools, rates, (column, ""), width);
    let is_text =
        |title: &str| Column::value_variants().iter().any(|it| it.is_text() && it.title() == title);
    table(&grid.heads.join("|"), grid.rows, is_text)
}

/// One pool.
pub(super) fn of_pool(detail: &Detail, rates: &Rates) -> String {
    lines(detail, rates).iter().map(|(_, line)| format!("{}\n", printable(line))).collect()
}

/// One pool: what stands in the way, then its requests and connections.
pub(super) fn lines(detail: &Detail, rates: &Rates) -> Vec<Line> {
    let mut lines = story(detail, rates);
    let mut list = |title: String, table: String| {
        lines.extend([(Kind::Plain, String::new()), (Kind::Title, title)]);
        lines.extend(table.lines().map(|row| (Kind::Plain, row.to_owned())));
    };
    let is_text = |name: &str| ["waits for", "state", "checked out at"].contains(&name);
    if !detail.requests.is_empty() {
        let shown = detail.requests.len() as u64;
        let rows = detail.requests.iter().map(request);
        let rows = table("request|waits|deadline in|for|waits for", rows, is_text);
        let title = of(shown, detail.pool.waiting, "requests, the oldest first");
        list(title, reasons(detail) + &rows);
    }
    if !detail.connections.is_empty() {
        let shown = detail.connections.len() as u64;
        let mut connections: Vec<_> = detail.connections.iter().collect();
        // What is in use first, and the longest of it.
        connections.sort_by_key(|it| !it.is_in_use());
        let head = "connection|for|age|request|state|checked out at";
        let rows = table(head, connections.into_iter().map(connection), is_text);
        list(of(shown, detail.pool.total, "connections, those in use first"), rows);
    }
    lines
}

impl Connection {
    fn is_in_use(&self) -> bool {
        matches!(self.state.as_str(), "inUse" | "interrupted")
    }
}

/// The answers to what an operator asks first.
fn story(detail: &Detail, rates: &Rates) -> Vec<Line> {
    let (pool, rate) = (&detail.pool, rates.of(detail.pool.pool));
    let max = pool.max_pool_size.map_or_else(String::new, |max| format!(" of {max}"));
    let Pool { address, status, generation, total, in_use, idle, pending, created, .. } = pool;
    let title = format!(
        "{address}: {status}, generation {generation}; {total}{max} connections: {in_use} in use, {idle} idle, \
         {pending} pending; {created} opened so far; {:.0} check-outs/s",
        rate.check_outs
    );
    let mut lines = vec![(Kind::Title, title)];
    lines.extend(longest_wait(detail));
    lines.extend(holders(detail));
    lines.extend(detail.last_clear.as_ref().map(|clear| cleared(pool, clear)));
    lines.extend(failed(detail, rate.failures));
    let recorder = match (pool.recorded, pool.flight_recorder) {
        (true, _) => "It is being recorded.",
        (false, true) => "It has a flight recorder.",
        (false, false) => "It has no flight recorder: ClientBuilder::flight_recorder gives it one.",
    };
    lines.push((Kind::Plain, recorder.to_owned()));
    lines
}

/// Which request has waited longest, and what stands in its way.
fn longest_wait(detail: &Detail) -> Option<Line> {
    let pool = &detail.pool;
    let oldest = detail.requests.iter().max_by(|one, other| one.waited.total_cmp(&other.waited))?;
    let text = format!(
        "{} without a connection. Longest: request {} for {}: {}.",
        count(pool.waiting, "request"),
        oldest.request,
        time(oldest.waited, oldest.exact),
        obstacle(pool, oldest)
    );
    Some((Kind::Trouble, text))
}

fn obstacle(pool: &Pool, request: &Request) -> String {
    let number = request.connection.unwrap_or_default();
    limit(pool, &request.waits_for).unwrap_or_else(|| match request.waits_for.as_str() {
        "establishment" => format!("connection {number} is being opened for it"),
        "pendingResponse" => format!("a late reply is being read on connection {number}"),
        other => other.to_owned(),
    })
}

/// What stands in the way of many requests.
fn limit(pool: &Pool, waits_for: &str) -> Option<String> {
    Some(match waits_for {
        "connection" => {
            let max = pool.max_pool_size.unwrap_or_default();
            format!("maxPoolSize ({max}) is reached, a connection has to be checked in")
        }
        "permit" => {
            let max = pool.max_connecting;
            format!("maxConnecting ({max}) is reached, connections are being opened")
        }
        "pacing" => "the pool waits to open more connections, after an overload or because it is \
                     adaptive"
            .to_owned(),
        _ => return None,
    })
}

/// Each limit that requests wait for, once.
fn reasons(detail: &Detail) -> String {
    let met: BTreeSet<_> = detail.requests.iter().map(|it| it.waits_for.as_str()).collect();
    let line = |it| Some(format!("{}: {}\n", word(it), limit(&detail.pool, it)?));
    met.into_iter().filter_map(line).collect()
}

/// As the table calls it.
fn word(waits_for: &str) -> &str {
    match waits_for {
        "connection" => "check-in",
        other => other,
    }
}

/// Which places in the application hold connections: a leak is a place that holds ever more.
fn holders(detail: &Detail) -> Vec<Line> {
    let mut places: BTreeMap<Option<&str>, Vec<&Connection>> = BTreeMap::new();
    for connection in detail.connections.iter().filter(|it| it.is_in_use()) {
        places.entry(connection.place.as_deref()).or_default().push(connection);
    }
    let longest = |held: &[&Connection]| held.iter().map(|it| it.since).fold(0.0, f64::max);
    let mut places: Vec<_> = places.into_iter().collect();
    places.sort_by(|(_, one), (_, other)| longest(other).total_cmp(&longest(one)));
    let more = places.len().saturating_sub(PLACES_MAX);
    let mut lines: Vec<_> = places
        .iter()
        .take(PLACES_MAX)
        .map(|(place, held)| {
            let longest = held.iter().max_by(|one, other| one.since.total_cmp(&other.since));
            let longest = longest.map_or_else(String::new, |it| {
                format!("connection {} for {}", it.connection, time(it.since, it.exact))
            });
            let place = place.map_or_else(
                || "of unknown callers: checked out before this command began, or not taken over yet".to_owned(),
                |place| format!("checked out at {place}"),
            );
            let text =
                format!("{} {place}. Longest: {longest}.", count(held.len() as u64, "connection"));
            (Kind::Plain, text)
        })
        .collect();
    if more > 0 {
        lines.push((Kind::Plain, format!("{} more.", count(more as u64, "place"))));
    }
    lines
}

/// What the last clear did.
fn cleared(pool: &Pool, clear: &Clear) -> Line {
    let end = if clear.interrupt { "interrupted" } else { "to be closed when checked in" };
    let text = format!(
        "Cleared {} ago ({} in all): {} failed, {} in use {end}, {} idle closed, {} being opened. \
         Cause: {}",
        milliseconds(clear.ago),
        count(pool.clears, "clear"),
        count(clear.requests, "waiting request"),
        clear.in_use,
        clear.idle,
        clear.pending,
        clear.cause
    );
    (Kind::Trouble, text)
}

fn failed(detail: &Detail, per_second: f64) -> Option<Line> {
    let failures = detail.pool.failures;
    if detail.pool.failed() == 0 {
        return None;
    }
    let last = detail.last_failure.as_ref().map_or_else(String::new, |failure| {
        format!(" The last, {} ago: {}", milliseconds(failure.ago), failure.text)
    });
    let text = format!(
        "{} failed, {per_second:.1}/s: {}, {} by a connection that was not opened, {} by a clear or a \
         paused pool, {} by the end of the pool, {} by a full queue or shedding.{last}",
        count(detail.pool.failed(), "check-out"),
        count(failures.timeout, "timeout"),
        failures.connection_error,
        failures.cleared,
        failures.closed,
        failures.rejected
    );
    Some((Kind::Trouble, text))
}

fn request(it: &Request) -> Vec<String> {
    let number = it.connection.unwrap_or_default();
    vec![
        it.request.to_string(),
        time(it.waited, it.exact),
        it.deadline.map_or_else(|| "-".to_owned(), milliseconds),
        it.purpose.clone(),
        match it.waits_for.as_str() {
            "establishment" => format!("connection {number}"),
            "pendingResponse" => format!("reply on {number}"),
            limit => word(limit).to_owned(),
        },
    ]
}

fn connection(it: &Connection) -> Vec<String> {
    let purpose = it.purpose.as_deref().filter(|purpose| *purpose != "other");
    let purpose = purpose.map_or_else(String::new, |purpose| format!(", {purpose}"));
    let stale = if it.stale { ", stale" } else { "" };
    let state = match it.state.as_str() {
        "inUse" => "in use",
        "pendingResponse" => "pending response",
        other => other,
    };
    vec![
        it.connection.to_string(),
        time(it.since, it.exact || !it.is_in_use()),
        milliseconds(it.age),
        it.request.map_or_else(|| "-".to_owned(), |request| request.to_string()),
        format!("{state}{purpose}{stale}"),
        it.place.clone().unwrap_or_default(),
    ]
}

/// A time that may be shorter than it seems, if it is not exact.
fn time(time: f64, is_exact: bool) -> String {
    let at_most = if is_exact { "" } else { "at most " };
    format!("{at_most}{}", milliseconds(time))
}

fn count(number: u64, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {what}{plural}")
}

fn of(shown: u64, all: u64, what: &str) -> String {
    if shown < all { format!("{shown} of {all} {what}") } else { format!("{all} {what}") }
}
