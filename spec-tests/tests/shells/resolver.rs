//! Resolvers that answer late or never.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use cenote_core::error::Stage;
use cenote_endpoint::ListenAddress;
use cenote_shell::connection::Lookup;

use crate::shell::{Shell, on_all_runtimes, pool_with_resolver};
use crate::world::{ping, plain, refusal};

on_all_runtimes!(
    a_silent_resolver_is_replaced_by_its_last_answer,
    a_lookup_that_is_dropped_fails_at_once,
);

/// What the resolver does with the next lookups.
enum Mode {
    Answers(SocketAddr),
    Silent(Vec<Lookup>),
    Denies,
}

fn a_silent_resolver_is_replaced_by_its_last_answer(shell: Shell) {
    let endpoint = plain();
    let ListenAddress::Tcp { port } = *endpoint.place() else { panic!("it is TCP") };
    let answers = || Mode::Answers((Ipv4Addr::LOCALHOST, port).into());
    let mode = Arc::new(Mutex::new(Mode::Silent(Vec::new())));
    let of_resolver = Arc::clone(&mode);
    let set = move |new| drop(std::mem::replace(&mut *mode.lock().expect("no panic"), new));
    let uri = format!("mongodb://db.test:{port}/?connectTimeoutMS=3000");
    let pool = pool_with_resolver(shell, &uri, move |lookup| {
        match &mut *of_resolver.lock().expect("no panic") {
            Mode::Answers(address) => lookup.answer(Ok(vec![*address])),
            Mode::Silent(kept) => kept.push(lookup),
            Mode::Denies => lookup.answer(Err(ErrorKind::NotFound.into())),
        }
    });
    let never = refusal(&pool);
    assert!(never.is_timeout(), "{never}");
    assert_eq!(
        never.with_advice().to_string(),
        "name resolution: timed out after 3s (check the host name and the resolver)"
    );

    set(answers());
    let first = pool.check_out().expect("a connection");
    set(Mode::Silent(Vec::new()));
    let begin = Instant::now();
    let second = pool.check_out().expect("a connection to the address of before");
    assert!(begin.elapsed() >= Duration::from_secs(1));

    set(Mode::Denies);
    let denied = refusal(&pool);
    assert!(denied.stage() == Stage::Dns && !denied.is_timeout(), "{denied}");
    set(answers());
    let third = pool.check_out().expect("a connection");
    drop((first, second, third));
    assert!(ping(&pool));
}

fn a_lookup_that_is_dropped_fails_at_once(shell: Shell) {
    let uri = "mongodb://db.test/?connectTimeoutMS=60000";
    let pool = pool_with_resolver(shell, uri, |lookup| {
        assert_eq!(format!("{lookup:?}"), "Lookup { host: \"db.test\", port: 27017, .. }");
        drop(lookup);
    });
    let error = refusal(&pool);
    assert!(error.stage() == Stage::Dns && !error.is_timeout(), "{error}");
    assert!(error.to_string().contains("the resolver gave no answer"), "{error}");
}
