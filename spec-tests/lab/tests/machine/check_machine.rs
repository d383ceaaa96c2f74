//! The event checker on the events of worlds: no finding in the complete stream, and a
//! finding in a stream without one event.

use std::time::Duration;

use cenote_check::{Checker, Limits, Line, Report};
use cenote_core::address::ServerAddress;
use cenote_core::pool::{Action, Input, Instant, PoolState};
use cenote_lab::lockstep::Tagged;
use cenote_lab::simulate::{Plan, inputs_of};

/// All events of a world.
fn life(seed: u64) -> Vec<Line> {
    let plan = Plan::new(seed, 300);
    let inputs = inputs_of(&plan).unwrap_or_else(|failure| panic!("{plan}\n{failure}"));
    let address: ServerAddress = "a:1".parse().expect("an address");
    let mut actions: Vec<Action<Tagged>> = Vec::new();
    let pool = PoolState::new(Instant::ORIGIN, plan.options, &mut actions);
    let mut pool = pool.expect("usable options");
    let mut lines = events(actions, &address, Duration::ZERO);
    for (now, input) in inputs {
        let at = now.max(pool.now()).saturating_since(Instant::ORIGIN);
        // No event announces these.
        let announced = if let Input::SetOptions { options } = &input {
            Some(Line::options_changed(options, &address, at))
        } else {
            let is_fork = matches!(input, Input::ResetAfterFork);
            is_fork.then(|| Line::reset_after_fork(&address, at))
        };
        let mut actions = Vec::new();
        // Some inputs are invalid on purpose.
        if pool.handle(now, input, &mut actions).is_ok() {
            lines.extend(announced);
        }
        lines.extend(events(actions, &address, at));
    }
    lines
}

fn events(actions: Vec<Action<Tagged>>, address: &ServerAddress, at: Duration) -> Vec<Line> {
    let line = |action| {
        let Action::EmitEvent(event) = action else { return None };
        Some(Line::of(&event, address, at))
    };
    actions.into_iter().filter_map(line).collect()
}

fn judge<'a>(lines: impl IntoIterator<Item = &'a Line>) -> Report {
    let mut checker = Checker::new(Limits::default());
    lines.into_iter().for_each(|line| checker.tell(line));
    checker.finish()
}

#[test]
fn the_machine_keeps_every_rule() {
    let mut events = 0;
    for seed in 0..200 {
        let report = judge(&life(seed));
        assert!(report.is_good(), "seed {seed}: {report}");
        events += report.events;
    }
    assert!(events > 20_000, "{events}");
}

/// No event with a counterpart can be left out without a finding.
#[test]
fn a_missing_event_is_noticed() {
    let mut checked = 0;
    for seed in 1..5 {
        let lines = life(seed);
        for left_out in 0..lines.len() {
            let text = format!("{:?}", lines[left_out]);
            let counterparts =
                ["PoolCreated", "Created", "Closed", "CheckOut", "Checked", "Pending"];
            if !counterparts.iter().any(|name| text.contains(&format!("kind: Connection{name}"))) {
                continue;
            }
            let rest = lines[..left_out].iter().chain(&lines[left_out + 1..]);
            assert!(!judge(rest).is_good(), "seed {seed}, without event {left_out}: {text}");
            checked += 1;
        }
    }
    assert!(checked > 100, "{checked} events were left out");
}

/// No event can be duplicated without a finding, except the clear of a service and lines that are
/// not events.
#[test]
fn a_duplicated_event_is_noticed() {
    for seed in 1..5 {
        let lines = life(seed);
        for twice in 0..lines.len() {
            let text = format!("{:?}", lines[twice]);
            let may_come_twice =
                ["service_id: Some", "kind: PoolOptionsChanged", "kind: PoolResetAfterFork"];
            if may_come_twice.iter().any(|what| text.contains(what)) {
                continue;
            }
            let all = lines[..=twice].iter().chain(&lines[twice..]);
            assert!(!judge(all).is_good(), "seed {seed}, twice event {twice}: {text}");
        }
    }
}
