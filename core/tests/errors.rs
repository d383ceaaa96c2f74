//! The rules behind `docs/errors.md`, one by one, where a table row is too short to say them.

#![cfg(feature = "protocol")]

use std::time::Duration;

use bson::oid::ObjectId;
use bson::{RawDocumentBuf, rawdoc};
use cenote_core::error::{
    CommandError, ConnectionError, Kind, ReplyPart, RetryWrites, Stage, label,
};
use cenote_core::sdam::{
    Check, Context, PoolVerdict, ServerVerdict, StateChange, TopologyVersion, Verdict,
    monitor_verdict, verdict,
};

const DISCOVERED: Context =
    Context { load_balanced: false, current_generation: true, topology_version: None };

fn refusal(reply: &RawDocumentBuf) -> CommandError {
    CommandError::from_reply(reply).expect("the reply is an error")
}

fn labels(error: &ConnectionError, retry_writes: RetryWrites) -> Vec<&str> {
    error.labels(retry_writes).collect()
}

/// An error of a driver's own connector.
#[test]
fn a_chain_of_sources_without_an_end_is_followed_for_a_while() {
    #[derive(Debug)]
    struct Endless;

    impl std::fmt::Display for Endless {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("endless")
        }
    }

    impl std::error::Error for Endless {
        fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
            Some(self)
        }
    }

    let error = ConnectionError::network(Stage::Tcp, Endless);
    assert!(error.source_as::<Endless>().is_some());
    assert!(error.source_as::<std::io::Error>().is_none());
    let text = error.with_advice().to_string();
    assert!(text.starts_with("connect: endless (check host"), "{text}");
}

#[test]
fn an_error_is_one_line_that_names_stage_and_reason() {
    let reset = std::io::Error::new(std::io::ErrorKind::ConnectionReset, "reset\nby peer");
    let error = ConnectionError::network(Stage::TlsIo, reset);
    assert_eq!(error.to_string(), "TLS handshake: reset by peer");

    let error = ConnectionError::timeout(Stage::Hello, Duration::from_millis(250));
    assert_eq!(error.to_string(), "hello: timed out after 250ms");

    let reply = rawdoc! { "ok": 0, "code": 18, "codeName": "AuthenticationFailed", "errmsg": "no" };
    let error = ConnectionError::command(Stage::Authentication, refusal(&reply));
    assert_eq!(error.to_string(), "authentication: no (code 18, AuthenticationFailed)");

    let error = ConnectionError::command(Stage::Hello, refusal(&rawdoc! { "ok": 0 }));
    assert_eq!(error.to_string(), "hello: the server gave no reason");
}

#[test]
fn a_cause_is_kept_and_shared_by_all_clones() {
    let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
    let error = ConnectionError::network(Stage::Tcp, refused).clone();
    let cause = error.source_as::<std::io::Error>();
    assert_eq!(cause.map(std::io::Error::kind), Some(std::io::ErrorKind::ConnectionRefused));

    let error = ConnectionError::certificate("the name does not match");
    assert_eq!((error.stage(), error.kind()), (Stage::TlsCertificate, &Kind::Protocol));
}

// CO-11, T-45, T-46: what happens to one connection is another question than what happens to the pool.
#[test]
fn a_connection_survives_refusals_in_use_and_what_was_not_sent() {
    let shutdown = refusal(&rawdoc! { "ok": 0, "code": 11600 });
    let in_use = ConnectionError::command(Stage::Operation, shutdown.clone());
    assert!(in_use.leaves_connection_healthy());
    assert!(!ConnectionError::command(Stage::Hello, shutdown).leaves_connection_healthy());

    let unsent = ConnectionError::configuration(Stage::Operation, "the message is too large");
    assert_eq!(verdict(&DISCOVERED, &unsent), Verdict::default());
    assert!(unsent.leaves_connection_healthy());
    assert!(!ConnectionError::configuration(Stage::Hello, "x").leaves_connection_healthy());

    let late = ConnectionError::timeout(Stage::Operation, Duration::from_secs(1));
    assert_eq!(verdict(&DISCOVERED, &late), Verdict::default());
    assert!(!late.leaves_connection_healthy());
}

// ER-31, ER-21: the client's retryWrites decides, and only while the connection is being established.
#[test]
fn retryable_writes_are_labelled_while_establishing() {
    let error = ConnectionError::network(Stage::Authentication, "end of stream");
    assert_eq!(labels(&error, RetryWrites::Enabled), [label::RETRYABLE_WRITE_ERROR]);
    assert!(labels(&error, RetryWrites::Disabled).is_empty());

    let error = ConnectionError::network(Stage::Operation, "end of stream");
    assert!(labels(&error, RetryWrites::Enabled).is_empty());
}

/// A message has room for millions: as long as they are, and no longer, is how long it takes.
#[test]
fn a_flood_of_labels_is_cut() {
    let labels: Vec<_> = (0..300_000).map(|number| number.to_string()).collect();
    let reply =
        rawdoc! { "ok": 0 , "errorLabels": labels.into_iter().collect::<bson::RawArrayBuf>() };
    let error = CommandError::from_reply(&reply).expect("a refusal");
    assert_eq!((error.labels.len(), error.labels[99].as_str()), (100, "99"));
}

#[test]
fn labels_of_the_server_are_passed_on_each_once() {
    let reply = rawdoc! { "ok": 0, "errorLabels": ["RetryableWriteError", 7, "Own", "Own"] };
    let error = ConnectionError::command(Stage::Operation, refusal(&reply));
    assert_eq!(labels(&error, RetryWrites::Enabled), ["RetryableWriteError", "Own"]);
}

// SD-30: a failed write concern counts, failed documents do not, and the command's own failure
// comes before both.
#[test]
fn the_parts_of_a_reply_that_count() {
    let write_concern = rawdoc! { "ok": 1, "writeConcernError": { "code": 91, "errmsg": "bye" }, "errorLabels": ["L"] };
    let error = refusal(&write_concern);
    assert_eq!((error.part, error.code), (ReplyPart::WriteConcern, Some(91)));
    assert_eq!((error.labels, error.message), (vec!["L".to_owned()], "bye".to_owned()));

    let documents = rawdoc! { "ok": 1, "writeErrors": [{ "index": 0, "code": 10107 }] };
    assert_eq!(CommandError::from_reply(&documents), None);

    let both = rawdoc! { "ok": 0, "code": 1, "writeConcernError": { "code": 91 } };
    assert_eq!(refusal(&both).code, Some(1));
}

#[test]
fn only_a_usable_ok_is_a_success() {
    for ok in [
        rawdoc! { "ok": 1 },
        rawdoc! { "ok": 1.0 },
        rawdoc! { "ok": 1_i64 },
        rawdoc! { "ok": true },
    ] {
        assert_eq!(CommandError::from_reply(&ok), None, "{ok:?}");
    }
    for no in [
        rawdoc! {},
        rawdoc! { "ok": 0.0 },
        rawdoc! { "ok": false },
        rawdoc! { "ok": "1" },
        rawdoc! { "ok": f64::NAN },
    ] {
        assert!(CommandError::from_reply(&no).is_some(), "{no:?}");
    }
}

#[test]
fn a_field_of_the_wrong_type_counts_as_absent() {
    let reply = rawdoc! {
        "ok": 0, "code": "91", "codeName": 3, "errmsg": ["x"], "errorLabels": "L",
        "topologyVersion": { "processId": 1, "counter": 2 },
    };
    let error = refusal(&reply);
    assert_eq!((error.code, error.code_name, error.topology_version), (None, None, None));
    assert!(error.message.is_empty());
    assert!(error.labels.is_empty());

    let not_a_document = rawdoc! { "ok": 1, "writeConcernError": "x" };
    assert_eq!(CommandError::from_reply(&not_a_document), None);
}

// SD-30: the message is a last resort, and a recovering node mentions its master too.
#[test]
fn the_code_decides_and_the_message_only_without_one() {
    use StateChange::{NodeIsRecovering, NodeIsShuttingDown, NotWritablePrimary};
    let of_code = |code: i32| {
        StateChange::of(&refusal(&rawdoc! { "ok": 0, "code": code, "errmsg": "not master" }))
    };
    for (expected, codes) in [
        (Some(NotWritablePrimary), &[10107, 13435, 10058][..]),
        (Some(NodeIsRecovering), &[11602, 13436, 189]),
        (Some(NodeIsShuttingDown), &[11600, 91]),
        (None, &[0, 1, 18, 50]),
    ] {
        for code in codes {
            assert_eq!(of_code(*code), expected, "{code}");
        }
    }

    let of_message =
        |message: &str| StateChange::of(&refusal(&rawdoc! { "ok": 0, "errmsg": message }));
    assert_eq!(of_message("err: not master"), Some(NotWritablePrimary));
    assert_eq!(of_message("not master or secondary; x"), Some(NodeIsRecovering));
    assert_eq!(of_message("the node is recovering"), Some(NodeIsRecovering));
    assert_eq!(of_message("Not Master"), None);
    assert_eq!(of_message(""), None);
}

// CO-18, CLB-07, SD-31
// SD-20 and T-62: an error of another generation changes nothing, behind load balancers neither.
#[test]
fn an_error_of_another_generation_changes_nothing() {
    for load_balanced in [false, true] {
        let old = Context { load_balanced, current_generation: false, ..DISCOVERED };
        for stage in Stage::ALL {
            let error = ConnectionError::network(stage, "reset");
            assert_eq!(verdict(&old, &error), Verdict::default(), "{stage}");
        }
    }
}

// SD-21: only an error with a newer version of the same process is news; one that names
// another process, or none, is taken for news.
#[test]
fn an_error_with_a_known_topology_version_changes_nothing() {
    let version = |process: u8, counter| TopologyVersion { process_id: [process; 12], counter };
    let context = Context { topology_version: Some(version(1, 5)), ..DISCOVERED };
    let judge = |reported: Option<TopologyVersion>| {
        let mut reply = refusal(&rawdoc! { "ok": 0, "code": 10107 });
        reply.topology_version = reported;
        verdict(&context, &ConnectionError::command(Stage::Operation, reply))
    };
    assert_eq!(judge(Some(version(1, 4))), Verdict::default());
    assert_eq!(judge(Some(version(1, 5))), Verdict::default());
    for news in [Some(version(1, 6)), Some(version(2, 1)), None] {
        let expected = Verdict {
            server: ServerVerdict::Unknown { topology_version: news },
            pool: PoolVerdict::Keep,
            check: Check::Request,
        };
        assert_eq!(judge(news), expected);
    }
}

/// A refused password says nothing about the server's state, so its description starts anew.
#[test]
fn only_a_change_of_state_leaves_its_version_behind() {
    let id = ObjectId::from_bytes([1; 12]);
    let reply = rawdoc! {
        "ok": 0, "code": 18, "topologyVersion": { "processId": id, "counter": 9_i64 },
    };
    let judged =
        verdict(&DISCOVERED, &ConnectionError::command(Stage::Authentication, refusal(&reply)));
    assert_eq!(judged.server, ServerVerdict::Unknown { topology_version: None });
}

// INT-08, SD-40, SD-41: unlike an application's connection, a monitor's never gets off lightly.
#[test]
fn a_failed_check_always_clears_and_a_timeout_interrupts() {
    for stage in Stage::ALL {
        let failed = monitor_verdict(&ConnectionError::network(stage, "reset"));
        assert_eq!(failed.pool, PoolVerdict::Clear { interrupt: false }, "{stage}");
        let late = monitor_verdict(&ConnectionError::timeout(stage, Duration::from_secs(10)));
        assert_eq!(late.pool, PoolVerdict::Clear { interrupt: true }, "{stage}");
    }
}

// BP-02
#[test]
fn a_refusal_keeps_the_whole_reply_and_does_not_show_it() {
    let time = rawdoc! { "clusterTime": 7 };
    let reply = rawdoc! {
        "ok": 0, "code": 462, "errmsg": "busy", "errorLabels": ["SystemOverloadedError"],
        "baseBackoffMS": 250, "$clusterTime": time.clone(), "payload": "hunter2",
    };
    let error = ConnectionError::command(Stage::Operation, refusal(&reply));
    let kept = error.clone().command_error().expect("it is one").reply().to_owned();
    assert_eq!(kept, reply);
    assert_eq!(kept.get_document("$clusterTime").ok(), Some(&*time));
    for shown in [format!("{error:?}"), format!("{error:#?}"), error.to_string()] {
        assert!(!shown.contains("hunter2") && !shown.contains("clusterTime"), "{shown}");
    }
}
