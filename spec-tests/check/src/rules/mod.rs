//! The rules, one function each.

mod check_out;
mod connection;
mod fields;
mod pool;

use super::line::Line;
use super::pool::Pool;

/// Whether an event may come now; otherwise what is wrong with that.
type Verdict = Result<(), String>;

/// A rule about an event and what came before it.
struct Rule {
    id: &'static str,
    judge: fn(&Pool, &Line) -> Verdict,
}

/// In this order, so that what is wrong with a stream as a whole is told first.
const RULES: [Rule; 26] = [
    rule("EV-10", pool::begins_with_its_creation),
    rule("PRD-01", pool::ready_comes_to_paused_pools),
    rule("CLR-06", pool::cleared_comes_to_ready_pools),
    rule("PS-17", pool::closed_is_the_end),
    rule("T-08", pool::closed_comes_after_what_was_available),
    rule("T-26", pool::nobody_outlasts_a_clear),
    rule("T-01", connection::created_comes_after_ready),
    rule("CO-05", connection::numbers_are_counted_up),
    rule("T-14", connection::there_are_no_more_than_allowed),
    rule("T-16", connection::no_more_are_pending_than_allowed),
    rule("EV-26", connection::nothing_comes_without_created_or_after_closed),
    rule("T-10", connection::created_ready_checked_out),
    rule("T-07", connection::checked_in_comes_before_closed),
    rule("CO-04", connection::checked_out_and_in_take_turns),
    rule("T-02", connection::stale_comes_after_cleared),
    rule("T-39", connection::stale_is_not_handed_out),
    rule("LR-02", connection::a_response_is_pending_after_checked_in),
    rule("LR-03", connection::a_pending_response_ends_once),
    rule("T-06", check_out::started_comes_first),
    rule("T-05", check_out::closed_comes_before_failed),
    rule("OUT-11", check_out::only_ready_pools_hand_out),
    rule("EV-21", fields::closed_says_why),
    rule("EV-22", fields::failed_says_why),
    rule("EV-23", fields::cleared_says_whether_it_interrupts),
    rule("LR-04", fields::a_pending_response_says_why_it_failed),
    rule("DU-01", fields::times_make_sense),
];

const fn rule(id: &'static str, judge: fn(&Pool, &Line) -> Verdict) -> Rule {
    Rule { id, judge }
}

/// What an event breaks, with the ids of the rules.
pub(super) fn broken_by(
    pool: &Pool,
    line: &Line,
) -> impl Iterator<Item = (&'static str, String)> + use<> {
    let judge = |rule: &Rule| (rule.judge)(pool, line).err().map(|what| (rule.id, what));
    // Almost always none.
    RULES.iter().filter_map(judge).collect::<Vec<_>>().into_iter()
}

/// What is missing when no more events come.
pub(super) fn broken_at_the_end(pool: &Pool) -> Vec<(&'static str, String)> {
    [("PS-22", pool::all_are_closed(pool)), ("PS-22", check_out::all_have_an_outcome(pool))]
        .into_iter()
        .filter_map(|(rule, verdict)| verdict.err().map(|what| (rule, what)))
        .collect()
}

/// `what`, unless it holds.
fn must(holds: bool, what: impl FnOnce() -> String) -> Verdict {
    if holds { Ok(()) } else { Err(what()) }
}
