//! What happened to the servers, in a few lines.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use cenote_core::connect::ServerKind;
use cenote_core::topology::TopologyKind;
use cenote_core::trace::topology::{SelectionOutcome, SelectionRecord};

use super::change::{Change, Effect};
use super::history::{History, Span};
use crate::clock::Clock;
use crate::text::{counted, paragraph, span};

/// What happened, on one screen: elections, times without a primary, requests for a server that waited,
/// what each server was for how long, and the changes.
pub fn summary(history: &History, clock: &Clock, at_most: usize) -> String {
    let mut text = String::new();
    let length = history.end.saturating_since(history.header.start);
    let program = history.header.program.as_deref().unwrap_or("an unknown program");
    let steps = counted(history.steps, "step", "steps");
    let begin = clock.beginning().map(|it| format!(" from {}", it.replace(' ', "\u{a0}")));
    let begin = begin.unwrap_or_default();
    let title = format!("a topology, by {program}: {steps}, {}{begin}", span(length));
    paragraph(&mut text, "trace      ", &title);
    if let Some(elections) = elections(history, clock) {
        paragraph(&mut text, "elections  ", &elections);
    }
    if let Some(without) = without_primary(history, clock) {
        paragraph(&mut text, "no primary ", &without);
    }
    if let Some(waits) = waits(history, clock) {
        paragraph(&mut text, "waits      ", &waits);
    }
    for (server, told) in servers(&history.spans(), length) {
        paragraph(&mut text, "server     ", &format!("{server}: {told}"));
    }
    let changes = counted(history.changes.len() as u64, "change", "changes");
    let _ = writeln!(text, "\n{changes}");
    for change in history.changes.iter().take(at_most) {
        paragraph(&mut text, &format!("  {}  ", clock.short(change.at)), &change.to_string());
    }
    let more = history.changes.len().saturating_sub(at_most);
    if more > 0 {
        let _ = writeln!(text, "  and {more} more: `cenote replay` prints all");
    }
    text
}

/// Elections and times without a primary, in a sentence each; empty if there were none.
pub fn verdict(history: &History, clock: &Clock) -> String {
    let elections = elections(history, clock).map(|told| format!("{told}. "));
    let without = without_primary(history, clock).map(|told| format!("No primary {told}. "));
    elections.unwrap_or_default() + &without.unwrap_or_default()
}

fn elections(history: &History, clock: &Clock) -> Option<String> {
    let elected = |change: &Change| Some((change.at, change.elected.clone()?));
    let all: Vec<_> = history.changes.iter().filter_map(elected).collect();
    let (at, server) = all.last()?;
    let (at, count) = (clock.short(*at), counted(all.len() as u64, "election", "elections"));
    Some(match all.len() {
        1 => format!("{count}, at {at}: {server}"),
        _ => format!("{count}, the last one at {at}: {server}"),
    })
}

/// For how long a replica set that had a primary had none.
fn without_primary(history: &History, clock: &Clock) -> Option<String> {
    let mut since = None;
    let mut times = Vec::new();
    for change in &history.changes {
        for effect in &change.effects {
            let Effect::Kind(was, now) = effect else { continue };
            if let Some(since) = since.take() {
                times.push((since, change.at.saturating_since(since)));
            }
            let is_lost = *was == TopologyKind::ReplicaSetWithPrimary
                && *now == TopologyKind::ReplicaSetNoPrimary;
            since = is_lost.then_some(change.at);
        }
    }
    times.extend(since.map(|since| (since, history.end.saturating_since(since))));
    let (at, longest) = times.iter().copied().max_by_key(|(_, length)| *length)?;
    let all: Duration = times.iter().map(|(_, length)| *length).sum();
    let longest = format!("from {} for {}", clock.short(at), span(longest));
    Some(match times.len() {
        1 => longest,
        count => {
            let count = counted(count as u64, "time", "times");
            format!("{count}, {} in all, the longest {longest}", span(all))
        }
    })
}

/// The requests for a server that had to wait.
fn waits(history: &History, clock: &Clock) -> Option<String> {
    let all = &history.selections;
    let (at, longest) = all.iter().max_by_key(|(_, selection)| selection.waited)?;
    let is_failed =
        |selection: &SelectionRecord| matches!(selection.outcome, SelectionOutcome::Failed(_));
    let failed = all.iter().filter(|(_, selection)| is_failed(selection)).count();
    let count = counted(all.len() as u64, "request for a server", "requests for a server");
    let (longest, at) = (span(longest.waited), clock.short(*at));
    let in_vain = if failed == 0 { String::new() } else { format!("{failed} of them in vain, ") };
    Some(format!("{count}, {in_vain}the longest of {longest} until {at}"))
}

/// What each server was, and for how much of the time.
fn servers(spans: &[Span], length: Duration) -> BTreeMap<&str, String> {
    let mut shares: BTreeMap<&str, BTreeMap<&str, Duration>> = BTreeMap::new();
    let mut errors: BTreeMap<&str, &str> = BTreeMap::new();
    for span in spans {
        let kind = span.kind.map_or("Unknown", ServerKind::name);
        *shares.entry(&span.server).or_default().entry(kind).or_default() +=
            span.to.saturating_since(span.from);
        if let (None, Some(error)) = (span.kind, span.text.strip_prefix("Unknown: "))
            && error != "not checked yet"
        {
            errors.insert(&span.server, error);
        }
    }
    let told = |(server, kinds): (_, BTreeMap<&str, Duration>)| {
        let mut kinds: Vec<_> = kinds.into_iter().collect();
        kinds.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
        let share = |time: Duration| {
            let share = time.as_secs_f64() / length.as_secs_f64().max(f64::MIN_POSITIVE);
            format!("{:.0} %", share * 100.0)
        };
        let kinds: Vec<_> =
            kinds.into_iter().map(|(kind, time)| format!("{kind} {}", share(time))).collect();
        let error = errors.get(server).map(|error| format!("; last error {error}"));
        (server, kinds.join(", ") + &error.unwrap_or_default())
    };
    shares.into_iter().map(told).collect()
}
