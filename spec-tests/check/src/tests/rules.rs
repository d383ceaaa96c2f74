//! Each rule with streams that keep it and streams that break it.

use super::words::{broken, broken_after, is_good, is_good_after, json};
use crate::{Limits, check};

#[test]
fn ev_10_a_pool_begins_with_its_creation() {
    assert_eq!(broken("ready"), [(1, "EV-10")]);
    assert_eq!(broken("nameless"), [(1, "EV-10")], "without options");
    assert_eq!(broken_after("pool"), [(3, "EV-10")]);
    is_good_after("closed, pool, ready, started, created 1, established 1, out 1");
}

#[test]
fn prd_01_ready_is_told_once() {
    assert_eq!(broken_after("ready"), [(3, "PRD-01")]);
    is_good_after("cleared, ready, cleared, ready");
}

#[test]
fn clr_06_cleared_is_told_once() {
    assert_eq!(broken_after("cleared, cleared"), [(4, "CLR-06")]);
    assert_eq!(broken("pool\ncleared"), [(2, "CLR-06")]);
    is_good_after("cleared service, cleared service");
}

#[test]
fn ps_17_closed_is_the_end() {
    for again in ["ready", "cleared", "closed"] {
        assert_eq!(broken_after(&format!("closed, {again}"))[..1], [(4, "PS-17")], "{again}");
    }
    assert_eq!(broken_after("closed, created 1, established 1")[1], (5, "PS-17"));
    is_good_after("closed, started, failed poolClosed");
}

#[test]
fn t_08_what_is_available_is_closed_before_the_pool() {
    let used = "started, created 1, established 1, out 1";
    is_good_after(&format!("{used}, in 1, closed 1 poolClosed, closed"));
    is_good_after(&format!("{used}, closed, in 1, closed 1 poolClosed"));
    assert_eq!(broken_after(&format!("{used}, in 1, closed, closed 1 poolClosed")), [(8, "T-08")]);
    assert_eq!(broken_after("created 1, closed, closed 1 poolClosed"), [(4, "T-08")]);
}

#[test]
fn t_26_nobody_outlasts_a_clear() {
    assert_eq!(broken_after("started, cleared, ready"), [(5, "T-26")]);
    is_good_after("started, cleared, failed connectionError, ready");
    // Its own connection is still pending.
    is_good_after("started, created 1, cleared, ready");
}

#[test]
fn t_01_nothing_is_created_before_ready() {
    assert_eq!(broken("pool\ncreated 1\nready"), [(2, "T-01")]);
    assert_eq!(broken_after("cleared, created 1"), [(4, "T-01")]);
    is_good_after("created 1");
}

#[test]
fn co_05_connections_are_numbered() {
    assert_eq!(broken_after("created 2"), [(3, "CO-05")]);
    assert_eq!(broken_after("created 1, lost 1, created 1"), [(5, "CO-05")]);
    is_good_after("created 1, lost 1, created 2");
}

#[test]
fn t_14_there_are_no_more_than_allowed() {
    let two = "ready\ncreated 1\ncreated 2";
    assert_eq!(broken(&format!("pool {{\"maxPoolSize\":1}}\n{two}")), [(4, "T-14")]);
    is_good(&format!("pool {{\"maxPoolSize\":2}}\n{two}"));
    is_good(&format!("pool {{\"maxPoolSize\":0}}\n{two}"));
    is_good(
        r#"pool {"maxPoolSize":1}
        ready
        created 1
        lost 1
        created 2"#,
    );
    // What is asked for goes before what the pool says.
    let lines = format!("pool {{\"maxPoolSize\":1}}\n{two}");
    let lines: Vec<_> = lines.lines().map(json).collect();
    let limits = Limits { max: Some(2), ..Limits::default() };
    assert!(check(lines.join("\n").as_bytes(), limits).expect("events").is_good());
}

#[test]
fn options_that_change_count_from_then_on() {
    let two = "ready\ncreated 1\noptions {\"maxPoolSize\":2}\ncreated 2";
    is_good(&format!("pool {{\"maxPoolSize\":1}}\n{two}"));
    let again = "lost 2\noptions {\"maxPoolSize\":1}\ncreated 3";
    assert_eq!(broken(&format!("pool {{\"maxPoolSize\":1}}\n{two}\n{again}")), [(8, "T-14")]);
    let connecting = "created 1, options {\"maxConnecting\":1}, created 2";
    assert_eq!(broken_after(connecting), [(5, "T-16")]);
    // What is not set is the default.
    is_good_after("created 1, options {\"maxConnecting\":1}, options {}, created 2");
}

#[test]
fn nothing_of_the_parent_is_left_in_a_child() {
    let used = "started, created 1, established 1, out 1, started, created 2, created 3";
    let reset = "child, closed 3 stale, closed 2 stale, failed connectionError, closed 1 stale";
    is_good_after(&format!("{used}, {reset}, created 4, closed 4 poolClosed, closed"));
    assert_eq!(broken_after(&format!("{used}, {reset}, created 1"))[0], (15, "CO-05"));
    assert_eq!(broken_after(&format!("{used}, {reset}, in 1")), [(15, "EV-26")]);
    // What is made in the child is none of that.
    let own = "started, created 4, established 4, out 4, closed 4 stale";
    assert_eq!(broken_after(&format!("{used}, {reset}, {own}"))[..2], [(19, "T-07"), (19, "T-02")]);
}

#[test]
fn t_16_no_more_are_pending_than_allowed() {
    assert_eq!(broken_after("created 1, created 2, created 3"), [(5, "T-16")]);
    is_good_after("created 1, created 2, established 1, created 3");
    is_good("pool {\"maxConnecting\":3}\nready\ncreated 1\ncreated 2\ncreated 3");
    // Those from before a clear count, too.
    let held = "created 1, created 2, cleared, ready, created 3";
    assert_eq!(broken_after(held), [(7, "T-16")]);
}

#[test]
fn ev_26_connections_begin_and_end() {
    assert_eq!(broken_after("established 1"), [(3, "EV-26")]);
    for after in ["lost 1", "established 1", "in 1"] {
        let words = format!("created 1, lost 1, {after}");
        assert_eq!(broken_after(&words), [(5, "EV-26")], "{after}");
    }
}

#[test]
fn t_10_ready_comes_between() {
    assert_eq!(broken_after("started, created 1, out 1"), [(5, "T-10")]);
    assert_eq!(broken_after("created 1, established 1, established 1"), [(5, "T-10")]);
    is_good_after("started, created 1, established 1, out 1");
}

#[test]
fn t_07_checked_in_comes_before_closed() {
    let used = "started, created 1, established 1, out 1";
    assert_eq!(broken_after(&format!("{used}, lost 1")), [(7, "T-07")]);
    is_good_after(&format!("{used}, in 1, lost 1"));
}

#[test]
fn co_04_one_at_a_time() {
    let used = "started, started, created 1, established 1, out 1";
    assert_eq!(broken_after(&format!("{used}, out 1")), [(8, "CO-04")]);
    assert_eq!(broken_after(&format!("{used}, in 1, in 1")), [(9, "CO-04")]);
    assert_eq!(broken_after("created 1, in 1"), [(4, "CO-04")]);
    is_good_after(&format!("{used}, in 1, out 1"));
}

#[test]
fn t_02_stale_comes_after_cleared() {
    assert_eq!(broken_after("created 1, established 1, closed 1 stale"), [(5, "T-02")]);
    assert_eq!(
        broken_after("cleared, ready, created 1, established 1, closed 1 stale"),
        [(7, "T-02")]
    );
    is_good_after("created 1, cleared, established 1, closed 1 stale");
    is_good_after("created 1, established 1, cleared service, closed 1 stale");
    // By a clear of its service that was not told.
    is_good_after("created 1, closed 1 stale");
}

/// A peer may close what lay in the pool when it was cleared.
#[test]
fn what_is_stale_may_be_lost() {
    let used = "started, created 1, established 1, out 1";
    is_good_after(&format!("{used}, cleared, in 1, lost 1"));
    is_good_after(&format!("{used}, in 1, lost 1"));
    is_good_after(&format!("{used}, in 1, cleared, lost 1"));
}

#[test]
fn t_39_stale_is_not_handed_out() {
    let stale = "started, created 1, cleared, ready, established 1, out 1";
    assert_eq!(broken_after(stale), [(8, "T-39")]);
}

#[test]
fn t_06_started_comes_first() {
    assert_eq!(broken_after("created 1, established 1, out 1, started"), [(5, "T-06")]);
    assert_eq!(broken("pool\nfailed connectionError"), [(2, "T-06")]);
    is_good("pool\nstarted\nfailed connectionError");
}

#[test]
fn t_05_closed_comes_before_failed() {
    let failed = "failed connectionError reset";
    assert_eq!(broken_after(&format!("started, created 1, {failed}, lost 1")), [(5, "T-05")]);
    is_good_after(&format!("started, created 1, lost 1, {failed}"));
    // One for each.
    let two = format!("started, started, created 1, created 2, lost 1, {failed}, {failed}");
    assert_eq!(broken_after(&two), [(9, "T-05")]);
    // A cancelled caller had none (SI-10).
    is_good_after("started, failed connectionError The_check-out_was_given_up_by_its_caller");
    // Nor had one that found the queue full, or was shed.
    is_good_after("started, failed connectionError Too_many_requests_wait");
    is_good_after("started, failed connectionError Shed_while_checking_out_a_connection");
}

#[test]
fn out_11_only_ready_pools_hand_out() {
    let used = "started, started, created 1, established 1, out 1, in 1";
    assert_eq!(broken_after(&format!("{used}, cleared, out 1"))[1], (10, "OUT-11"));
}

#[test]
fn ev_21_to_23_reasons() {
    let used = "created 1, established 1";
    assert_eq!(broken_after(&format!("{used}, closed 1 boredom")), [(5, "EV-21")]);
    assert_eq!(broken_after(&format!("{used}, lost 1 idle")), [(5, "EV-21")]);
    assert_eq!(broken_after("started, failed boredom"), [(4, "EV-22")]);
    assert_eq!(broken_after("cleared silently"), [(3, "EV-23")]);
    assert_eq!(broken_after("cleared service loudly"), [(3, "EV-23")]);
    for reason in ["error", "idle", "poolClosed"] {
        is_good_after(&format!("{used}, closed 1 {reason}"));
    }
    for reason in ["poolClosed", "timeout", "connectionError"] {
        is_good_after(&format!("started, failed {reason}"));
    }
}

#[test]
fn du_01_times() {
    let used = "started, created 1, established 1";
    assert_eq!(broken_after(&format!("{used}, out 1 without duration")), [(6, "DU-01")]);
    assert_eq!(broken_after(&format!("{used}, out 1 -1")), [(6, "DU-01")]);
    let at =
        |seconds: f64, words: &str| json(words).replacen('{', &format!("{{\"at\":{seconds},"), 1);
    let lines = |out: String| {
        let lines = [
            at(0.0, "pool"),
            at(0.5, "ready"),
            at(0.5, "started"),
            at(0.5, "created 1"),
            at(0.6, "established 1"),
            out,
        ];
        check(lines.join("\n").as_bytes(), Limits::default()).expect("events")
    };
    assert!(lines(at(0.6, "out 1 100")).is_good());
    assert_eq!(lines(at(0.6, "out 1 700")).findings[0].rule, "DU-01");
    assert_eq!(lines(at(0.4, "out 1 100")).findings[0].rule, "DU-01", "backwards");
}

#[test]
fn ps_22_everything_comes_to_its_end() {
    let used = "started, created 1, established 1, out 1";
    assert_eq!(broken_after(&format!("{used}, closed")), [(7, "PS-22")]);
    assert_eq!(broken_after("started, closed"), [(4, "PS-22")]);
    // The stream may be a part of one.
    is_good_after(used);
}

#[test]
fn lr_02_a_response_is_pending_after_checked_in() {
    let used = "started, created 1, established 1, out 1";
    assert_eq!(
        broken_after(&format!("{used}, started, drains 1, drained 1, in 1")).first(),
        Some(&(8, "LR-02"))
    );
    assert_eq!(broken_after(&format!("{used}, in 1, drains 1")), [(8, "LR-02")]);
    assert_eq!(broken_after("started, drains 1"), [(4, "EV-26")]);
    is_good_after(&format!("{used}, in 1, started, drains 1, drained 1, out 1"));
}

#[test]
fn lr_03_a_pending_response_ends_once() {
    let late = "started, created 1, established 1, out 1, in 1, started, drains 1";
    for after in ["out 1", "lost 1", "drains 1"] {
        let broken = broken_after(&format!("{late}, {after}"));
        assert!(broken.contains(&(10, "LR-03")), "{after}: {broken:?}");
    }
    for after in ["drained 1", "drained 1 not error"] {
        let twice = format!("{late}, {after}, {after}");
        assert_eq!(broken_after(&twice), [(11, "LR-03")], "it was not announced");
    }
    is_good_after(&format!("{late}, drained 1 not timeout, failed timeout, started, drains 1"));
    is_good_after(&format!("{late}, drained 1 not error, lost 1"));
}

#[test]
fn lr_04_a_pending_response_says_why_it_failed() {
    let late = "started, created 1, established 1, out 1, in 1, started, drains 1";
    assert_eq!(broken_after(&format!("{late}, drained 1 not stale")), [(10, "LR-04")]);
    let wordless = format!("{late}, drained 1 without duration");
    assert_eq!(broken_after(&wordless), [(10, "DU-01")]);
}
