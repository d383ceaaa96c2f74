//! What a library that wraps a client tells servers of itself, on the sockets of monitors, too.

use std::sync::{Arc, Mutex};

use bson::{Document, RawDocumentBuf, rawdoc};
use cenote_core::connect::{DriverInfo, ServerApi};
use cenote_endpoint::{Ending, Endpoint, Role};

use crate::shells::{ClientSetup, Shell, on_all_runtimes};
use crate::world::{SOON, World, member, open, tell, until_open, until_so};

on_all_runtimes!(
    monitors_send_the_metadata,
    monitors_introduce_themselves_once,
    every_hello_declares_the_version_of_the_api,
);

/// The driver's name as the server was told last.
fn told(endpoint: &Endpoint) -> String {
    let client: Option<RawDocumentBuf> =
        endpoint.with(|server, _| server.statistics().last_client.clone());
    let client = client.expect("a client sent its metadata");
    let driver = client.get_document("driver").expect("there is a driver");
    driver.get_str("name").expect("a name").to_owned()
}

// HS-21, HS-29, HS-30: nothing is opened on that account, and no hello sent; a monitor's next socket says it.
fn monitors_send_the_metadata(shell: Shell) {
    let only = member(Role::Primary);
    // No connection of the pool: the metadata comes from a monitor.
    let world = World::of(shell, &[&only], SOON);
    world.until_all_known();
    until_open(&only, 2);
    // The second socket is open a moment before its hello is sent.
    until_so(|| {
        let hellos = only.with(|server, _| server.statistics().commands.get("isMaster").copied());
        if hellos >= Some(2) { Ok(()) } else { Err(format!("{hellos:?} hellos")) }
    });
    let accepted = only.with(|server, _| server.statistics().accepted);
    let name = told(&only);
    let driver = DriverInfo::new("framework", Some("2.0"), None).expect("nothing is wrong with it");
    assert!(world.client.append_metadata(driver.clone()));
    assert!(!world.client.append_metadata(driver), "the same");
    assert_eq!(only.with(|server, _| server.statistics().accepted), accepted);
    assert_eq!((told(&only), open(&only)), (name.clone(), 2));
    tell(&only, |server, now| server.break_connections(now, Ending::Reset, None));
    world.until("Unknown and back", |world| {
        let changed = world.server_events();
        changed.iter().filter(|event| **event == "ServerDescriptionChanged").count() >= 3
    });
    let expected = format!("{name}|framework");
    until_so(|| match told(&only) {
        told if told == expected => Ok(()),
        told => Err(told),
    });
    // And so does the pool.
    assert!(world.client.command("admin", &rawdoc! { "ping": 1 }).is_ok());
    assert_eq!(told(&only), expected);
    world.client.close();
}

// AU-01, HS-07, HS-08, SD-51: the first hello has the old name, and later ones the new name and no handshake; none logs in.
fn monitors_introduce_themselves_once(shell: Shell) {
    let only = member(Role::Primary);
    let heard = Arc::new(Mutex::new(Vec::new()));
    let observed = Arc::clone(&heard);
    tell(&only, |server, _| {
        server.observe_commands(move |command| {
            let command = Document::try_from(command).expect("a document");
            observed.lock().expect("no panic").push(command);
        });
    });
    let uri = format!(
        "mongodb://app:pencil@{}/?directConnection=true&serverMonitoringMode=poll&heartbeatFrequencyMS=500",
        only.address()
    );
    let world = World::with_options(shell, &uri, None);
    until_so(|| match heard.lock().expect("no panic").len() {
        0..3 => Err("fewer than three checks".to_owned()),
        _ => Ok(()),
    });
    world.client.close();
    let heard = heard.lock().expect("no panic");
    for (number, hello) in heard.iter().enumerate() {
        let is_first = number == 0;
        let name = hello.keys().next().expect("a name").as_str();
        assert_eq!(name, if is_first { "isMaster" } else { "hello" }, "{hello}");
        assert_eq!(hello.get("helloOk"), Some(&true.into()), "{hello}");
        assert_eq!(hello.contains_key("client"), is_first, "{hello}");
        for login in ["saslSupportedMechs", "speculativeAuthenticate"] {
            assert!(!hello.contains_key(login), "{hello}");
        }
    }
}

// HS-03, HS-12: a hello that declares the version has the new name from the first one on, of monitors, too.
fn every_hello_declares_the_version_of_the_api(shell: Shell) {
    let only = member(Role::Primary);
    let uri = format!("mongodb://{}/?heartbeatFrequencyMS=500", only.address());
    let api = Some(ServerApi::default());
    let setup = ClientSetup { server_api: api, ..ClientSetup::default() };
    let client = shell.build_client(&uri, setup).expect("good options");
    client.command("admin", &rawdoc! { "ping": 1 }).expect("it works");
    // An API that the server does not know is the server's to refuse.
    let error = client.command("admin", &rawdoc! { "ping": 1, "apiVersion": "2" });
    let error = error.expect_err("there is one version").to_string();
    assert!(error.contains("code 322"), "{error}");
    client.close();
    let commands = only.with(|server, _| server.statistics().commands.clone());
    let legacy = commands.keys().filter(|name| name.eq_ignore_ascii_case("ismaster"));
    assert_eq!(legacy.count(), 0, "{commands:?}");
    // A pool's and two monitors'.
    assert!(commands["hello"] >= 3, "{commands:?}");
}
