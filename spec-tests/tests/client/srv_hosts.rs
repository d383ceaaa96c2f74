//! Which servers the SRV records of `mongodb+srv://` may name, with a real name server on the loopback.
//!
//! The host is `shop.test`, of whose domain no server here is.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use bson::rawdoc;
use cenote_core::uri::UriError;
use cenote_core::uri::srv::{SrvError, SrvRecord};
use cenote_endpoint::{Endpoint, NameServer};
use cenote_shell::builder::BuildError;
use cenote_shell::client::ClientBuildError;

use crate::shells::{AnyClient, ClientSetup, NameService, Shell, on_all_runtimes};
use crate::srv::{record, router};
use crate::world::{World, until_so};

on_all_runtimes!(
    servers_below_an_allowed_suffix_are_used,
    suffixes_that_are_refused,
    routers_that_are_followed_are_below_the_suffix,
    a_validator_takes_the_place_of_every_other_check,
    a_validator_that_cannot_be_used,
    routers_that_the_validator_rejects_are_left_out,
);

const URI: &str = "mongodb+srv://shop.test/?tls=false&heartbeatFrequencyMS=500";

fn names(records: &[SrvRecord]) -> NameServer {
    let names = NameServer::start().expect("a port");
    set(&names, records);
    names
}

fn set(names: &NameServer, records: &[SrvRecord]) {
    names.set_srv("_mongodb._tcp.shop.test", records);
}

fn evil() -> SrvRecord {
    SrvRecord::new("DB.Evil.com.", 1)
}

fn with_suffix(names: &NameServer, suffix: Option<&'static str>) -> NameService {
    NameService { suffix, ..NameService::new(names.address(), World::SRV_INTERVAL) }
}

fn with_validator(
    names: &NameServer,
    validator: impl Fn(&str) -> bool + Send + Sync + 'static,
) -> NameService {
    NameService { validator: Some(Box::new(validator)), ..with_suffix(names, None) }
}

fn build(
    shell: Shell,
    uri: &str,
    names: NameService,
) -> Result<Box<dyn AnyClient>, ClientBuildError> {
    shell.build_client(uri, ClientSetup { names: Some(names), ..ClientSetup::default() })
}

fn refused(shell: Shell, uri: &str, names: NameService) -> ClientBuildError {
    build(shell, uri, names).map(|client| client.close()).expect_err("it must not be built")
}

fn ping(client: &dyn AnyClient) {
    client.command("admin", &rawdoc! { "ping": 1 }).expect("a reply");
}

fn until_uses(client: &dyn AnyClient, endpoints: &[&Endpoint]) {
    let sorted = |mut all: Vec<String>| {
        all.sort();
        all
    };
    let expected = sorted(endpoints.iter().map(|it| it.address().to_string()).collect());
    until_so(|| {
        let used = sorted(client.servers().iter().map(|it| it.address.to_string()).collect());
        if used == expected { Ok(()) } else { Err(format!("{used:?}, not {expected:?}")) }
    });
}

/// Until the records have been looked up again, and what they say has been done.
fn until_asked_twice(names: &NameServer) {
    let end = names.questions() + 2;
    until_so(|| if names.questions() >= end { Ok(()) } else { Err("not asked".to_owned()) });
}

fn servers_below_an_allowed_suffix_are_used(shell: Shell) {
    let router = router();
    let names = names(&[record(&router)]);
    let error = refused(shell, URI, with_suffix(&names, None));
    let is_outside = matches!(&error, ClientBuildError::Srv(SrvError::OutsideDomain { .. }));
    assert!(is_outside, "{error}");
    for (option, suffix) in
        [("&srvAllowedHostsSuffix=.0.0.1.", None), ("&srvAllowedHostsSuffix=a.b", Some("0.0.1"))]
    {
        let uri = format!("{URI}{option}");
        let client = build(shell, &uri, with_suffix(&names, suffix)).expect("a client");
        ping(&*client);
        client.close();
    }
    let uri = format!("{URI}&srvAllowedHostsSuffix=127.0.0.1");
    let error = refused(shell, &uri, with_suffix(&names, None)).to_string();
    assert!(error.contains("127.0.0.1., which is not below 127.0.0.1"), "{error}");
}

fn suffixes_that_are_refused(shell: Shell) {
    let names = names(&[evil()]);
    for (suffix, reason) in [
        ("Co.UK", "is a public suffix"),
        ("公司.CN", "is a public suffix"),
        ("com", "has one label"),
        ("...", "is empty"),
    ] {
        let error = refused(shell, URI, with_suffix(&names, Some(suffix))).to_string();
        assert!(error.contains(&format!("srvAllowedHostsSuffix {reason}")), "{suffix}: {error}");
    }
    let uri = format!("{URI}&srvAllowedHostsSuffix=github.io");
    let error = refused(shell, &uri, with_suffix(&names, None)).to_string();
    assert!(error.contains("srvAllowedHostsSuffix is a public suffix"), "{error}");
    let error = refused(shell, "mongodb://127.0.0.1", with_suffix(&names, Some("evil.com")));
    assert!(is_srv_only(&error, "srvAllowedHostsSuffix"), "{error}");
    assert_eq!(names.questions(), 0, "nothing is looked up before");
}

fn is_srv_only(error: &ClientBuildError, of: &str) -> bool {
    matches!(
        error,
        ClientBuildError::Pool(BuildError::Uri(UriError::SrvOnly { option })) if *option == of
    )
}

/// `srvMaxHosts` is for those that are left: by chance alone, it would hardly be the one each time.
fn routers_that_are_followed_are_below_the_suffix(shell: Shell) {
    let [a, b] = [router(), router()];
    let names = names(&[record(&a)]);
    let uri = format!("{URI}&srvMaxHosts=1&srvAllowedHostsSuffix=0.0.1");
    let client = build(shell, &uri, with_suffix(&names, None)).expect("a client");
    let others = (1..=20).map(|port| SrvRecord::new("db.evil.com.", port));
    set(&names, &others.chain([record(&b)]).collect::<Vec<_>>());
    until_uses(&*client, &[&b]);
    set(&names, &[evil()]);
    until_asked_twice(&names);
    until_uses(&*client, &[&b]);
    ping(&*client);
    client.close();
}

fn a_validator_takes_the_place_of_every_other_check(shell: Shell) {
    let router = router();
    let names = names(&[record(&router), evil()]);
    let asked = Arc::new(Mutex::new(Vec::new()));
    let (seen, accepts) = (Arc::clone(&asked), "127.0.0.1");
    let validator = move |host: &str| {
        seen.lock().expect("no panic").push(host.to_owned());
        host == accepts
    };
    let error = refused(shell, URI, with_validator(&names, validator));
    let ClientBuildError::Srv(SrvError::Rejected { target, .. }) = &error else {
        panic!("{error}");
    };
    assert!(target.eq_ignore_ascii_case("db.evil.com."), "{target}");
    let mut hosts = std::mem::take(&mut *asked.lock().expect("no panic"));
    hosts.sort();
    assert_eq!(hosts, ["127.0.0.1", "db.evil.com"]);

    let error = refused(shell, URI, with_validator(&names, |_| panic!("of the test")));
    let has_panicked = matches!(error, ClientBuildError::Srv(SrvError::ValidatorPanicked { .. }));
    assert!(has_panicked, "{error}");

    set(&names, &[record(&router)]);
    let client = build(shell, URI, with_validator(&names, |_| true)).expect("a client");
    ping(&*client);
    client.close();
}

fn a_validator_that_cannot_be_used(shell: Shell) {
    let names = names(&[evil()]);
    let uri = format!("{URI}&srvAllowedHostsSuffix=evil.com");
    let error = refused(shell, &uri, with_validator(&names, |_| true)).to_string();
    assert!(error.contains("srvAllowedHostsSuffix and srvHostValidator exclude"), "{error}");
    let error = refused(shell, "mongodb://127.0.0.1", with_validator(&names, |_| true));
    assert!(is_srv_only(&error, "srvHostValidator"), "{error}");
    assert_eq!(names.questions(), 0, "nothing is looked up before");
}

fn routers_that_the_validator_rejects_are_left_out(shell: Shell) {
    let [a, b] = [router(), router()];
    let names = names(&[record(&a)]);
    let is_strict = Arc::new(AtomicBool::new(false));
    let strict = Arc::clone(&is_strict);
    let validator = move |host: &str| match host {
        "panics.evil.com" => panic!("of the test"),
        "db.evil.com" => false,
        _ => !strict.load(Ordering::Relaxed),
    };
    let client = build(shell, URI, with_validator(&names, validator)).expect("a client");
    set(&names, &[evil(), SrvRecord::new("panics.evil.com.", 1), record(&a), record(&b)]);
    until_uses(&*client, &[&a, &b]);
    // None is left: as after a failed look-up, nothing changes.
    is_strict.store(true, Ordering::Relaxed);
    set(&names, &[record(&a)]);
    until_asked_twice(&names);
    until_uses(&*client, &[&a, &b]);
    is_strict.store(false, Ordering::Relaxed);
    until_uses(&*client, &[&a]);
    ping(&*client);
    client.close();
}
