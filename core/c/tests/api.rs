//! The library as its users have it, through the exported functions.

use cenote_c::action::{Action, ActionKind, CheckOutError};
use cenote_c::cause::{
    Cause, CauseKind, CauseOptions, CauseStage, cenote_cause_release, cenote_cause_retain,
};
use cenote_c::checked;
use cenote_c::event::EventKind;
use cenote_c::input::*;
use cenote_c::options::Options;
use cenote_c::pool::{NEVER, Pool, cenote_pool_free, cenote_set_events};
use cenote_c::status::Status;
use cenote_c::text::TextKind;
use cenote_c::verdict::{CheckVerdict, PoolVerdict, ServerVerdict};

const ADDRESS: &str = "db1.example.com";
const SECOND: u64 = 1_000_000_000;

fn pool_with(options: &Options) -> *mut Pool {
    checked::pool_new(ADDRESS, options, 0).expect("valid options")
}

fn actions(pool: *mut Pool) -> Vec<Action> {
    let next = || checked::next_action(pool).expect("a pool");
    std::iter::from_fn(|| Some(next()).filter(|it| it.kind != ActionKind::None as u32)).collect()
}

/// The actions without the events.
fn tasks(pool: *mut Pool) -> Vec<Action> {
    actions(pool).into_iter().filter(|it| it.kind != ActionKind::EmitEvent as u32).collect()
}

/// A pool with one connection that is available, whose payload is 77.
fn warm_pool(options: &Options) -> *mut Pool {
    let pool = pool_with(options);
    assert_eq!(cenote_ready(pool, 1), Status::Ok);
    assert_eq!(cenote_check_out(pool, 2, 1, 11, NEVER, 0), Status::Ok);
    assert_eq!(cenote_established(pool, 3, 1, 77), Status::Ok);
    assert_eq!(cenote_check_in(pool, 4, 1, 77), Status::Ok);
    let _ = actions(pool);
    pool
}

fn refused() -> *mut Cause {
    let options =
        CauseOptions { stage: CauseStage::Tcp as u32, payload: 5, ..CauseOptions::default() };
    checked::cause_new(options, "connection refused", None, "").expect("a cause")
}

fn text(pool: *mut Pool, kind: TextKind) -> Result<String, Status> {
    checked::action_text(pool, kind as u32)
}

#[test]
fn a_connection_is_made_used_and_closed() {
    let pool = pool_with(&Options::default());
    assert_eq!(cenote_ready(pool, 1), Status::Ok);
    assert_eq!(cenote_check_out(pool, 2, 1, 11, NEVER, 0), Status::Ok);
    let seen = actions(pool);
    let events: Vec<_> = seen.iter().map(|it| it.event).collect();
    let (created, ready) = (EventKind::PoolCreated as u32, EventKind::PoolReady as u32);
    let (started, made) = (EventKind::CheckOutStarted as u32, EventKind::ConnectionCreated as u32);
    assert_eq!(events, [created, ready, started, made, 0]);
    assert_eq!(seen[2].owner, 1);
    let remaining: Vec<_> = seen.iter().map(|it| it.remaining).collect();
    assert_eq!(remaining, [4, 3, 2, 1, 0]);
    let start = seen.last().expect("five");
    assert_eq!((start.kind, start.connection), (ActionKind::StartEstablish as u32, 1));
    assert_eq!((start.deadline, start.background), (NEVER, false));
    assert_eq!((start.owner, start.generation), (1, 0));

    assert_eq!(cenote_established(pool, 5, 1, 77), Status::Ok);
    let [_, told, delivered] = actions(pool)[..] else { panic!("ready, checked out, delivered") };
    assert_eq!((told.event, told.owner), (EventKind::CheckedOut as u32, 1));
    assert_eq!((told.connection, told.duration), (1, 3));
    assert_eq!(delivered.kind, ActionKind::Deliver as u32);
    let Action { waiter, connection, payload, error, .. } = delivered;
    assert_eq!((waiter, connection, payload, error), (11, 1, 77, 0));

    let snapshot = checked::snapshot(pool).expect("a pool");
    assert_eq!((snapshot.total, snapshot.in_use, snapshot.max_pool_size), (1, 1, 100));
    let info = checked::connection(pool, 1).expect("a connection");
    assert_eq!((info.state, info.created, info.since, info.is_stale), (2, 2, 5, false));

    assert_eq!(cenote_check_in(pool, 6, 1, 77), Status::Ok);
    assert_eq!(checked::next_available(pool), Ok((1, 77)));
    assert_eq!(cenote_close(pool, 7), Status::Ok);
    let [closed] = tasks(pool)[..] else { panic!("one action") };
    assert_eq!((closed.kind, closed.payload), (ActionKind::CloseSocket as u32, 77));
    assert_eq!(checked::next_available(pool), Err(Status::Nothing));
    assert_eq!(cenote_pool_free(pool), Status::Ok);
}

#[test]
fn a_pool_that_is_born_ready_is_filled_with_its_minimum() {
    let options = Options { min_pool_size: 1, ..Options::default() };
    let pool = checked::pool_new_ready(ADDRESS, &options, 0).expect("valid options");
    let seen = actions(pool);
    let events: Vec<_> = seen.iter().map(|it| it.event).collect();
    assert_eq!(events, [EventKind::PoolCreated as u32, EventKind::ConnectionCreated as u32, 0]);
    let start = seen.last().expect("three");
    assert_eq!((start.kind, start.background), (ActionKind::StartEstablish as u32, true));
    assert_eq!(checked::is_filled(pool), Ok(false));
    assert_eq!(cenote_established(pool, 1, 1, 77), Status::Ok);
    assert_eq!(checked::is_filled(pool), Ok(true));
    assert_eq!(cenote_pool_free(pool), Status::Ok);
    assert_eq!(checked::is_filled(pool), Err(Status::BadHandle));

    let options = Options { max_pool_size: 1, min_pool_size: 2, ..Options::default() };
    assert_eq!(checked::pool_new_ready(ADDRESS, &options, 0), Err(Status::BadOptions));
}

#[test]
fn a_failure_has_its_texts_labels_and_cause() {
    let pool = pool_with(&Options::default());
    let cause = refused();
    assert_eq!(cenote_ready(pool, 1), Status::Ok);
    assert_eq!(cenote_check_out(pool, 2, 1, 11, NEVER, 0), Status::Ok);
    let _ = actions(pool);
    assert_eq!(cenote_establish_failed(pool, 3, 1, cause), Status::Ok);
    let message = "connect: connection refused";
    loop {
        let action = checked::next_action(pool).expect("a pool");
        if action.event == EventKind::ConnectionClosed as u32 {
            assert_eq!(text(pool, TextKind::Reason).as_deref(), Ok("error"));
            assert_eq!(text(pool, TextKind::Message).as_deref(), Ok(message));
        }
        if action.event == EventKind::CheckOutFailed as u32 {
            assert_eq!(text(pool, TextKind::Event).as_deref(), Ok("ConnectionCheckOutFailed"));
            assert_eq!(text(pool, TextKind::Reason).as_deref(), Ok("connectionError"));
            let log = text(pool, TextKind::Log).expect("a message");
            assert!(log.contains("db1.example.com:27017") && log.contains(message), "{log}");
            let json = text(pool, TextKind::LogJson).expect("a message");
            let begin = r#"{"message":"Connection checkout failed","serverHost":"db1.example.com","serverPort":27017,"#;
            assert!(json.starts_with(begin) && json.ends_with('}'), "{json}");
            assert!(json.contains(r#""durationMS":1e-6"#), "{json}");
        }
        if action.kind != ActionKind::Deliver as u32 {
            continue;
        }
        assert_eq!(action.error, CheckOutError::EstablishFailed as u32);
        assert!(action.is_retryable && !action.is_timeout && action.has_cause);
        assert_eq!(text(pool, TextKind::Name).as_deref(), Ok("ConnectionError"));
        assert_eq!(text(pool, TextKind::Message).as_deref(), Ok(message));
        let labels = "SystemOverloadedError RetryableError";
        assert_eq!(text(pool, TextKind::Labels).as_deref(), Ok(labels));
        let labels = format!("{labels} RetryableWriteError");
        assert_eq!(text(pool, TextKind::LabelsRetryWrites), Ok(labels));
        let again = checked::action_cause(pool).expect("a cause");
        assert_ne!(again, cause, "another reference");
        assert_eq!(checked::cause_payload(again), Ok(5));
        assert_eq!(checked::cause_text(again, TextKind::Message as u32).as_deref(), Ok(message));
        assert_eq!(cenote_cause_release(again), Status::Ok);
        break;
    }
    // The last action of the pool still has it.
    assert_eq!(checked::cause_users(cause), Ok(1));
    assert_eq!(cenote_pool_free(pool), Status::Ok);
    assert_eq!(checked::cause_users(cause), Ok(0));
    assert_eq!(cenote_cause_release(cause), Status::Ok);
}

#[test]
fn what_is_wrong_is_a_status_and_a_text() {
    let pool = warm_pool(&Options::default());
    let cause = refused();
    let said = |status, expected: &str| {
        let text = checked::last_error();
        assert!(text.contains(expected), "{status:?}: {text}");
        status
    };
    let null = std::ptr::null_mut();
    assert_eq!(said(cenote_ready(null, 1), "it is null"), Status::BadHandle);
    let foreign = std::ptr::without_provenance_mut(0x1234_5678);
    assert_eq!(said(cenote_ready(foreign, 1), "never was one"), Status::BadHandle);
    assert_eq!(said(cenote_cause_release(pool.cast()), "no cause"), Status::BadHandle);
    assert_eq!(said(cenote_ready(cause.cast(), 1), "no pool"), Status::BadHandle);
    assert_eq!(
        said(cenote_check_in(pool, 5, 1, 77), "connection c1 is not checked out"),
        Status::Misuse
    );
    assert_eq!(said(cenote_check_in(pool, 5, 9, 77), "never made a connection c9"), Status::Misuse);
    assert_eq!(
        said(cenote_check_out(pool, 5, 1, 0, NEVER, 0), "w1 comes after w1"),
        Status::Misuse
    );
    assert_eq!(
        said(cenote_check_out(pool, 5, 2, 0, NEVER, 3), "cenote_purpose: there is no 3"),
        Status::BadValue
    );
    let options = CauseOptions { kind: 7, ..CauseOptions::default() };
    assert_eq!(checked::cause_new(options, "", None, ""), Err(Status::BadValue));
    let options = CauseOptions { stage: 8, ..CauseOptions::default() };
    assert_eq!(checked::cause_new(options, "", None, ""), Err(Status::BadValue));
    let options = CauseOptions { size: 8, ..CauseOptions::default() };
    assert_eq!(checked::cause_new(options, "", None, ""), Err(Status::BadSize));
    let options = |field: fn(&mut Options)| {
        let mut options = Options::default();
        field(&mut options);
        said(checked::pool_new(ADDRESS, &options, 0).expect_err("wrong"), "")
    };
    assert_eq!(options(|it| it.size += 8), Status::BadSize);
    assert_eq!(options(|it| it.max_pool_size = -2), Status::BadOptions);
    assert_eq!(options(|it| it.max_connecting = 1 << 32), Status::BadOptions);
    assert_eq!(options(|it| it.max_connecting = 0), Status::BadOptions);
    assert_eq!(options(|it| it.load_balanced = 2), Status::BadOptions);
    assert_eq!(options(|it| (it.min_pool_size, it.max_pool_size) = (3, 2)), Status::BadOptions);
    assert!(checked::last_error().contains("minPoolSize is 3"), "{}", checked::last_error());
    assert_eq!(checked::pool_new("a:b:c", &Options::default(), 0), Err(Status::BadText));
    assert_eq!(checked::options_from_uri("http://x").map(drop), Err(Status::BadText));
    // No action was pulled since.
    assert_eq!(text(pool, TextKind::Name), Err(Status::Nothing));
    assert_eq!(checked::action_text(pool, 10), Err(Status::BadValue));
    assert_eq!(checked::action_cause(pool), Err(Status::Nothing));
    assert_eq!(checked::connection(pool, 2).map(drop), Err(Status::Nothing));
    assert_eq!(cenote_cause_release(cause), Status::Ok);
    assert_eq!(cenote_cause_release(cause), Status::BadHandle, "a double free");
    assert_eq!(cenote_cause_retain(cause), Status::BadHandle);
    assert_eq!(cenote_establish_failed(pool, 5, 1, cause), Status::BadHandle);
    assert_eq!(cenote_pool_free(pool), Status::Ok);
    assert_eq!(cenote_pool_free(pool), Status::BadHandle, "a double free");
}

#[test]
fn options_come_from_a_connection_string() {
    let uri = "mongodb://db1.example.com/?maxPoolSize=7&maxIdleTimeMS=1500&loadBalanced=true";
    let options = checked::options_from_uri(uri).expect("a connection string");
    let Options { max_pool_size, min_pool_size, max_idle_time, load_balanced, .. } = options;
    assert_eq!((max_pool_size, min_pool_size), (7, -1));
    assert_eq!((max_idle_time, load_balanced), (1_500_000_000, 1));
    let pool = warm_pool(&Options { load_balanced: -1, ..options });
    assert_eq!(checked::next_deadline(pool), Ok((4 + 1_500_000_001, 2)));
    assert_eq!(checked::needs_now(pool), Ok(true));
    assert_eq!(checked::set_options(pool, 5, &Options::default()), Status::Ok);
    assert_eq!(checked::next_deadline(pool), Ok((NEVER, 0)));
    assert_eq!(checked::needs_now(pool), Ok(false));
    assert_eq!(checked::snapshot(pool).expect("a pool").max_pool_size, 100);
    assert_eq!(cenote_pool_free(pool), Status::Ok);
}

/// These texts are all that the library makes of secrets: it opens no connection and reads no file.
#[test]
fn no_text_shows_a_secret() {
    let wrong = ["%", "/", "?", "@", ":", "#", "[", ",", "é\u{202e}", "=&", ""];
    for (wrong, option) in wrong.iter().flat_map(|wrong| {
        let options = [
            "authMechanism=x",
            "maxPoolSize=1&minPoolSize=2&x=",
            "proxyPassword=",
            "tlsCAFile=-----",
        ];
        options.map(|option| (wrong, option))
    }) {
        let uri = format!("mongodb://app:hunter2{wrong}hunter2@a/?{option}hunter2");
        let error = checked::options_from_uri(&uri).map(drop);
        assert_eq!(error, Err(Status::BadText), "{uri}");
        assert!(!checked::last_error().contains("hunter2"), "{uri}: {}", checked::last_error());
    }
}

#[test]
fn a_clear_starts_a_generation_and_interrupts() {
    let pool = warm_pool(&Options::default());
    let cause = refused();
    assert_eq!(cenote_check_out(pool, 5, 2, 11, NEVER, 0), Status::Ok);
    let verdict = checked::verdict(pool, 1, cause, None).expect("a verdict");
    assert_eq!(verdict.pool, PoolVerdict::Keep as u32, "an overload, perhaps");
    let options =
        CauseOptions { kind: CauseKind::Timeout as u32, after: SECOND, ..CauseOptions::default() };
    let timeout = checked::cause_new(options, "", None, "").expect("a cause");
    let verdict = checked::monitor_verdict(timeout).expect("a verdict");
    assert_eq!(verdict.pool, PoolVerdict::ClearAndInterrupt as u32);
    assert_eq!(verdict.server, ServerVerdict::Unknown as u32);
    assert_eq!(checked::clear(pool, 6, timeout, true, None), Status::Ok);
    let kinds: Vec<_> = tasks(pool).iter().map(|it| it.kind).collect();
    assert_eq!(kinds, [ActionKind::Deliver as u32, ActionKind::Interrupt as u32]);
    assert_eq!((checked::generation(pool, None), checked::generation_of(pool, 1)), (Ok(1), Ok(0)));
    assert!(checked::connection(pool, 1).expect("in use").is_stale);
    assert_eq!(cenote_check_in_errored(pool, 7, 1, 77, timeout), Status::Ok);
    assert_eq!(checked::generation_of(pool, 1), Err(Status::Nothing));
    assert_eq!(cenote_check_out(pool, 8, 3, 12, NEVER, 0), Status::Ok);
    let failed = tasks(pool).pop().expect("an action");
    assert_eq!((failed.error, failed.waiter), (CheckOutError::PoolCleared as u32, 12));
    let message = text(pool, TextKind::Message).expect("a message");
    assert!(message.ends_with("failed with: operation: timed out after 1s"), "{message}");
    for handle in [cause, timeout] {
        assert_eq!(cenote_cause_release(handle), Status::Ok);
    }
    assert_eq!(cenote_pool_free(pool), Status::Ok);
}

#[test]
fn verdicts_know_codes_and_topology_versions() {
    let pool = warm_pool(&Options::default());
    let process = [7; 12];
    let options = CauseOptions {
        kind: CauseKind::Command as u32,
        has_code: 1,
        code: 91,
        has_topology_version: 1,
        process_id: process,
        counter: 3,
        ..CauseOptions::default()
    };
    let labels = "RetryableWriteError Other";
    let cause =
        checked::cause_new(options, "shutting down", Some("ShutdownInProgress"), labels).unwrap();
    let shown = checked::cause_text(cause, TextKind::Message as u32).unwrap();
    let expected =
        "operation: shutting down (code 91, ShutdownInProgress) [RetryableWriteError, Other]";
    assert_eq!(shown, expected);
    assert_eq!(checked::cause_text(cause, TextKind::Labels as u32).as_deref(), Ok(labels));
    let verdict = |version| checked::verdict(pool, 1, cause, version).expect("a verdict");
    let clear = verdict(None);
    assert_eq!(clear.pool, PoolVerdict::Clear as u32);
    assert_eq!(clear.server, ServerVerdict::UnknownWithTopologyVersion as u32);
    assert_eq!(clear.check, CheckVerdict::Request as u32);
    assert_eq!(verdict(Some((process, 2))), clear);
    assert_eq!(verdict(Some((process, 3))).pool, PoolVerdict::Keep as u32, "known already");
    let stale = checked::verdict(pool, 9, cause, None).expect("a verdict");
    assert_eq!(stale.pool, PoolVerdict::Keep as u32, "no such connection");
    assert_eq!(cenote_cause_release(cause), Status::Ok);
    assert_eq!(cenote_pool_free(pool), Status::Ok);
}

#[test]
fn connections_of_services_and_purposes() {
    let pool = pool_with(&Options { load_balanced: 1, max_pool_size: 1, ..Options::default() });
    let service = Some([3; 12]);
    assert_eq!(cenote_ready(pool, 1), Status::Ok);
    assert_eq!(cenote_check_out(pool, 2, 1, 11, NEVER, 1), Status::Ok);
    assert_eq!(checked::handshaken(pool, 3, 1, service), Status::Ok);
    assert_eq!(cenote_established(pool, 4, 1, 77), Status::Ok);
    assert_eq!(checked::generation(pool, service), Ok(0));
    assert_eq!(checked::generation(pool, Some([4; 12])), Err(Status::Nothing));
    assert_eq!(checked::snapshot(pool).expect("a pool").in_use_by_cursors, 1);
    assert_eq!(cenote_repurpose(pool, 5, 1, 2), Status::Ok);
    assert_eq!(checked::snapshot(pool).expect("a pool").in_use_by_transactions, 1);
    let _ = actions(pool);
    let cause = refused();
    assert_eq!(checked::clear(pool, 6, cause, false, None), Status::Misuse);
    assert_eq!(checked::clear(pool, 6, cause, false, service), Status::Ok);
    let cleared = actions(pool)[0];
    assert_eq!(cleared.event, EventKind::PoolCleared as u32);
    assert_eq!((cleared.has_service, cleared.service), (true, [3; 12]));
    let info = checked::connection(pool, 1).expect("in use");
    assert_eq!((info.has_service, info.service, info.is_stale), (true, [3; 12], true));
    // A timeout names what the connections are used for.
    assert_eq!(cenote_check_out(pool, 7, 2, 12, 9, 0), Status::Ok);
    assert_eq!(cenote_timer(pool, 9), Status::Ok);
    let failed = tasks(pool).pop().expect("an action");
    assert!(failed.is_timeout && failed.error == CheckOutError::WaitQueueTimeout as u32);
    let message = text(pool, TextKind::Message).expect("a message");
    assert!(message.contains("in use by transactions: 1"), "{message}");
    assert_eq!(cenote_cause_release(cause), Status::Ok);
    assert_eq!(cenote_pool_free(pool), Status::Ok);
}

#[test]
fn a_hello_before_a_clear_of_its_service_is_stale() {
    let pool = pool_with(&Options { load_balanced: 1, ..Options::default() });
    assert_eq!(cenote_ready(pool, 1), Status::Ok);
    assert_eq!(cenote_check_out(pool, 2, 1, 11, NEVER, 0), Status::Ok);
    assert_eq!(cenote_check_out(pool, 2, 2, 12, NEVER, 0), Status::Ok);
    let (cause, service) = (refused(), Some([3; 12]));
    assert_eq!(checked::service_clears(pool), Ok(0));
    assert_eq!(checked::clear(pool, 3, cause, false, service), Status::Ok);
    assert_eq!(checked::service_clears(pool), Ok(1));
    let _ = actions(pool);
    assert_eq!(checked::handshaken_late(pool, 4, 1, service, 2), Status::Misuse, "not yet");
    assert_eq!(checked::handshaken_late(pool, 4, 1, service, 0), Status::Ok);
    assert_eq!(tasks(pool)[0].kind, ActionKind::AbortEstablish as u32);
    assert_eq!(checked::handshaken_late(pool, 4, 2, service, 1), Status::Ok);
    assert!(tasks(pool).is_empty());
    assert_eq!(cenote_established(pool, 5, 2, 77), Status::Ok);
    assert_eq!(checked::snapshot(pool).expect("a pool").in_use, 1);
    assert_eq!(cenote_cause_release(cause), Status::Ok);
    assert_eq!(cenote_pool_free(pool), Status::Ok);
}

#[test]
fn late_replies_are_drained() {
    let options =
        Options { experimental_pending_response: 1, max_pool_size: 1, ..Options::default() };
    let pool = warm_pool(&options);
    let cause = refused();
    assert_eq!(cenote_check_out(pool, 5, 2, 11, NEVER, 0), Status::Ok);
    assert_eq!(cenote_check_in_pending_response(pool, 6, 1, 77, 4, cause), Status::Ok);
    assert_eq!(checked::snapshot(pool).expect("a pool").pending_response, 1);
    assert_eq!(cenote_check_out(pool, 7, 3, 12, NEVER, 0), Status::Ok);
    let drain = tasks(pool).pop().expect("an action");
    assert_eq!((drain.kind, drain.payload), (ActionKind::StartDrain as u32, 77));
    assert_eq!(cenote_drain_progress(pool, 8, 1), Status::Ok);
    assert_eq!(cenote_drained(pool, 9, 1, 77), Status::Ok);
    let seen = actions(pool);
    let drained = |it: &&Action| it.event == EventKind::PendingResponseSucceeded as u32;
    let event = seen.iter().find(drained).expect("an event");
    assert_eq!((event.request_id, event.duration), (4, 2));
    assert_eq!(cenote_drain_failed(pool, 9, 1, cause), Status::Misuse);
    assert_eq!(cenote_retire_connections(pool, 10), Status::Ok);
    assert_eq!(cenote_check_in(pool, 11, 1, 77), Status::Ok);
    assert_eq!(checked::snapshot(pool).expect("a pool").total, 0);
    assert_eq!(cenote_cause_release(cause), Status::Ok);
    assert_eq!(cenote_pool_free(pool), Status::Ok);
}

#[test]
fn the_rest_of_the_inputs_does_what_it_says() {
    let pool = warm_pool(&Options::default());
    let cause = refused();
    assert_eq!(cenote_idle_closed_by_peer(pool, 5, 1, cause), Status::Ok);
    assert_eq!(checked::snapshot(pool).expect("a pool").total, 0);
    assert_eq!(cenote_check_out(pool, 6, 2, 11, NEVER, 0), Status::Ok);
    assert_eq!(cenote_cancel(pool, 7, 2), Status::Ok);
    let failed = tasks(pool).pop().expect("an action");
    assert_eq!((failed.error, failed.waiter), (CheckOutError::Cancelled as u32, 11));
    assert_eq!(cenote_reset_after_fork(pool, 8), Status::Ok);
    assert_eq!(checked::generation(pool, None), Ok(1));
    let _ = actions(pool);
    assert_eq!(cenote_set_events(pool, 0), Status::Ok);
    assert_eq!(cenote_check_out(pool, 9, 3, 12, NEVER, 0), Status::Ok);
    let [start] = actions(pool)[..] else { panic!("one action, without events") };
    assert_eq!((start.kind, start.connection), (ActionKind::StartEstablish as u32, 3));
    assert_eq!(cenote_cause_release(cause), Status::Ok);
    assert_eq!(cenote_pool_free(pool), Status::Ok);
}

/// The numbers of closed connections are forgotten, and still told from those that never were.
#[test]
fn many_connections_come_and_go() {
    let pool = pool_with(&Options::default());
    let cause = refused();
    assert_eq!(cenote_set_events(pool, 0), Status::Ok);
    assert_eq!(cenote_ready(pool, 0), Status::Ok);
    for number in 1..=1000 {
        assert_eq!(cenote_check_out(pool, number, number, 0, NEVER, 0), Status::Ok);
        assert_eq!(cenote_established(pool, number, number, 7), Status::Ok);
        assert_eq!(cenote_check_in_errored(pool, number, number, 7, cause), Status::Ok);
        assert_eq!(tasks(pool).len(), 3);
    }
    // As if it had been given up meanwhile: the socket comes back.
    assert_eq!(cenote_established(pool, 1001, 1, 7), Status::Ok);
    let [closed] = tasks(pool)[..] else { panic!("one action") };
    assert_eq!((closed.kind, closed.connection), (ActionKind::CloseSocket as u32, 1));
    assert_eq!(cenote_established(pool, 1001, 1001, 7), Status::Misuse);
    assert!(checked::last_error().contains("never made"), "{}", checked::last_error());
    assert_eq!(cenote_cause_release(cause), Status::Ok);
    assert_eq!(cenote_pool_free(pool), Status::Ok);
}

#[test]
fn one_thread_at_a_time() {
    let pool = warm_pool(&Options::default()).addr();
    let use_it = move || {
        let pool = std::ptr::without_provenance_mut(pool);
        (0..20_000).map(|now| cenote_timer(pool, now)).collect::<Vec<_>>()
    };
    let threads: Vec<_> = (0..4).map(|_| std::thread::spawn(use_it)).collect();
    let seen: Vec<_> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
    // A thread can lose each time, but not all of them.
    assert!(seen.contains(&Status::Ok));
    assert!(seen.iter().all(|status| [Status::Ok, Status::Busy].contains(status)));
    let pool = std::ptr::without_provenance_mut(pool);
    assert_eq!(cenote_pool_free(pool), Status::Ok);
}

#[test]
fn a_trace_is_read_in_pieces() {
    use cenote_c::trace::{cenote_trace_start, cenote_trace_stop};

    let pool = pool_with(&Options::default());
    assert_eq!(checked::trace_read(pool, 100), Err(Status::Nothing));
    assert_eq!(cenote_trace_stop(pool), Status::Nothing);
    assert_eq!(cenote_trace_start(pool, 1), Status::Ok);
    assert_eq!(cenote_trace_start(pool, 1), Status::Nothing);
    assert_eq!(cenote_ready(pool, 1), Status::Ok);
    let mut trace = checked::trace_read(pool, 10).expect("a beginning");
    assert_eq!(trace.len(), 10);
    assert_eq!(cenote_check_out(pool, 2, 1, 11, NEVER, 0), Status::Ok);
    assert_eq!(cenote_trace_stop(pool), Status::Ok);
    assert_eq!(cenote_close(pool, 3), Status::Ok);
    loop {
        let more = checked::trace_read(pool, 50).expect("the rest");
        if more.is_empty() {
            break;
        }
        trace.extend(more);
    }
    // Documents, each of which begins with its length.
    let mut keys = Vec::new();
    let mut rest = &trace[..];
    while !rest.is_empty() {
        let (document, next) =
            rest.split_at(u32::from_le_bytes(*rest.first_chunk().unwrap()) as usize);
        let key = document[5..].split(|byte| *byte == 0).next().expect("a key");
        keys.push(String::from_utf8_lossy(key).into_owned());
        rest = next;
    }
    assert_eq!(keys.first().map(String::as_str), Some("format"));
    assert_eq!(keys.iter().filter(|key| *key == "t").count(), 2, "two inputs: {keys:?}");
    assert_eq!(keys.last().map(String::as_str), Some("end"));
    assert_eq!(cenote_pool_free(pool), Status::Ok);
}
