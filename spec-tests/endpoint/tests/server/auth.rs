//! Logging in, in every way and in vain.

use bson::raw::RawBinaryRef;
use bson::spec::BinarySubtype;
use bson::{Document, RawDocumentBuf, rawdoc};
use cenote_endpoint::{
    ConnectionId, Fault, Mechanism, Peer, ScramFault, ScramSettings, Script, Settings,
    SettingsError, User,
};

use crate::server::client::World;
use crate::server::scram_client::{self as scram, Kind};

const FEW: ScramSettings =
    ScramSettings { sha1_iterations: 40, sha256_iterations: 50, skip_empty_exchange: true };

fn settings(users: Vec<User>) -> Settings {
    Settings { auth: true, users, scram: FEW, ..Settings::seeded(1) }
}

fn user() -> Vec<User> {
    vec![User::new("user", "pencil")]
}

fn binary(text: &str) -> RawBinaryRef<'_> {
    RawBinaryRef { subtype: BinarySubtype::Generic, bytes: text.as_bytes() }
}

fn sasl_start(mechanism: &str, payload: &str) -> RawDocumentBuf {
    let mut command = rawdoc! { "saslStart": 1, "mechanism": mechanism };
    command.append(bson::raw::cstr!("payload"), binary(payload));
    command.append(bson::raw::cstr!("options"), rawdoc! { "skipEmptyExchange": true });
    command
}

fn sasl_continue(conversation: i32, payload: &str) -> RawDocumentBuf {
    let mut command = rawdoc! { "saslContinue": 1, "conversationId": conversation };
    command.append(bson::raw::cstr!("payload"), binary(payload));
    command
}

fn payload(reply: &Document) -> String {
    let bytes = reply.get_binary_generic("payload").expect("a payload");
    String::from_utf8(bytes.clone()).expect("UTF-8")
}

/// A whole conversation; the code of the error where it ends.
fn log_in(
    world: &mut World,
    id: ConnectionId,
    kind: Kind,
    (database, name, password): (&str, &str, &str),
) -> Result<(), i32> {
    let reply = world.run(id, database, &sasl_start(kind.name(), &scram::first(name)));
    go_on(world, id, kind, (database, name, password), &reply)
}

fn go_on(
    world: &mut World,
    id: ConnectionId,
    kind: Kind,
    (database, name, password): (&str, &str, &str),
    started: &Document,
) -> Result<(), i32> {
    let code = |reply: &Document| reply.get_i32("code").map_or(Ok(()), Err);
    code(started)?;
    assert!(!started.get_bool("done").expect("done"));
    let server_first = payload(started);
    assert!(scram::field(&server_first, "r=").starts_with(scram::NONCE));
    let (last, expected) = scram::last(kind, name, password, &server_first);
    let conversation = started.get_i32("conversationId").expect("a conversation");
    let mut reply = world.run(id, database, &sasl_continue(conversation, &last));
    code(&reply)?;
    assert_eq!(payload(&reply), expected, "the server proves itself");
    if !reply.get_bool("done").expect("done") {
        reply = world.run(id, database, &sasl_continue(conversation, ""));
        code(&reply)?;
        assert_eq!(payload(&reply), "");
    }
    assert!(reply.get_bool("done").expect("done"));
    Ok(())
}

fn may_read(world: &mut World, id: ConnectionId) -> bool {
    world.run(id, "test", &rawdoc! { "find": "birds" }).get_f64("ok").expect("ok") == 1.0
}

#[test]
fn both_kinds_of_scram_let_the_right_one_in() {
    for kind in [Kind::Sha1, Kind::Sha256] {
        let mut world = World::new(settings(user()));
        let id = world.connect();
        assert!(!may_read(&mut world, id));
        assert_eq!(log_in(&mut world, id, kind, ("admin", "user", "pencil")), Ok(()));
        assert!(may_read(&mut world, id));
        let status = world.good(id, "admin", &rawdoc! { "connectionStatus": 1 });
        let users =
            status.get_document("authInfo").unwrap().get_array("authenticatedUsers").unwrap();
        assert_eq!(users, &vec![bson::bson!({ "user": "user", "db": "admin" })]);
        world.good(id, "admin", &rawdoc! { "logout": 1 });
        assert!(!may_read(&mut world, id));
    }
}

#[test]
fn every_failure_looks_the_same() {
    let users = vec![
        User::new("user", "pencil"),
        User::new("old", "pencil").with_mechanisms(&[Mechanism::ScramSha1]),
    ];
    let mut world = World::new(settings(users));
    let id = world.connect();
    for user in [
        ("admin", "user", "pen"),
        ("admin", "nobody", "pencil"),
        ("test", "user", "pencil"),
        ("admin", "old", "pencil"),
    ] {
        assert_eq!(log_in(&mut world, id, Kind::Sha256, user), Err(18), "{user:?}");
    }
    assert!(!may_read(&mut world, id));
    assert_eq!(world.server.statistics().failed_logins, 4);
    assert_eq!(log_in(&mut world, id, Kind::Sha1, ("admin", "old", "pencil")), Ok(()));
    // A conversation that failed cannot be taken up again.
    assert_eq!(world.refused(id, "admin", &sasl_continue(1, "x")), 17);
}

#[test]
fn names_and_passwords_may_be_odd() {
    let users = vec![
        User::new("a=b,c", "x").in_database("other"),
        User::new("IX", "IX"),
        User::new("\u{2168}", "\u{2163}"),
    ];
    let mut world = World::new(settings(users));
    let id = world.connect();
    assert_eq!(log_in(&mut world, id, Kind::Sha1, ("other", "a=b,c", "x")), Ok(()));
    // AU-40: the client has prepared its passwords.
    assert_eq!(log_in(&mut world, id, Kind::Sha256, ("admin", "IX", "IX")), Ok(()));
    assert_eq!(log_in(&mut world, id, Kind::Sha256, ("admin", "\u{2168}", "IV")), Ok(()));
}

#[test]
fn the_empty_exchange_is_spared_only_by_both() {
    let spared = |asks: bool, spares: bool| {
        let scram = ScramSettings { skip_empty_exchange: spares, ..FEW };
        let mut world = World::new(Settings { scram, ..settings(user()) });
        let id = world.connect();
        let mut start = rawdoc! { "saslStart": 1, "mechanism": "SCRAM-SHA-1" };
        start.append(bson::raw::cstr!("payload"), binary(&scram::first("user")));
        let start = if asks { sasl_start("SCRAM-SHA-1", &scram::first("user")) } else { start };
        let first = world.good(id, "admin", &start);
        let (last, _) = scram::last(Kind::Sha1, "user", "pencil", &payload(&first));
        let reply = world.good(id, "admin", &sasl_continue(1, &last));
        let done = reply.get_bool("done").unwrap();
        assert_eq!(may_read(&mut world, id), done);
        if !done {
            world.good(id, "admin", &sasl_continue(1, ""));
            assert!(may_read(&mut world, id));
        }
        done
    };
    assert!(spared(true, true));
    assert!(!spared(true, false));
    assert!(!spared(false, true));
}

#[test]
fn hello_tells_the_mechanisms_and_starts_speculatively() {
    let mut world = World::new(settings(user()));
    let id = world.connect();
    let hello = |name: &str, user: &str| {
        let mut speculative = sasl_start(name, &scram::first(user));
        speculative.append(bson::raw::cstr!("db"), "admin");
        rawdoc! {
            "hello": 1,
            "saslSupportedMechs": format!("admin.{user}"),
            "speculativeAuthenticate": speculative,
        }
    };
    let reply = world.good(id, "admin", &hello("SCRAM-SHA-256", "user"));
    let mechanisms = reply.get_array("saslSupportedMechs").unwrap();
    assert_eq!(mechanisms, &vec!["SCRAM-SHA-1".into(), "SCRAM-SHA-256".into()]);
    let started = reply.get_document("speculativeAuthenticate").unwrap().clone();
    assert!(!started.contains_key("ok"), "HS-45");
    let user = ("admin", "user", "pencil");
    assert_eq!(go_on(&mut world, id, Kind::Sha256, user, &started), Ok(()));
    assert!(may_read(&mut world, id));

    let other = world.connect();
    let reply = world.good(other, "admin", &hello("SCRAM-SHA-256", "nobody"));
    assert!(!reply.contains_key("speculativeAuthenticate"));
    assert!(!reply.contains_key("saslSupportedMechs"));
    let reply = world.good(other, "admin", &hello("PLAIN", "user"));
    assert!(!reply.contains_key("speculativeAuthenticate"));
    assert_eq!(world.server.statistics().failed_logins, 0);
}

#[test]
fn a_certificate_is_its_subject() {
    const SUBJECT: &str = "CN=client,OU=drivers,O=cenote";
    let authenticate = rawdoc! { "authenticate": 1, "mechanism": "MONGODB-X509" };
    let with = |subject: Option<&str>, settings: Settings| {
        let mut world = World::new(settings);
        let certificate_subject = subject.map(str::to_owned);
        let id = world.connect_as(Peer { certificate_subject, ..Peer::default() });
        (world, id)
    };
    let known = || settings(vec![User::x509(SUBJECT)]);

    let (mut world, id) = with(Some(SUBJECT), known());
    let named = rawdoc! { "authenticate": 1, "mechanism": "MONGODB-X509", "user": "CN=other" };
    assert_eq!(world.refused(id, "$external", &named), 18);
    assert_eq!(world.refused(id, "admin", &authenticate), 18);
    let reply = world.good(id, "$external", &authenticate);
    assert_eq!(reply.get_str("user").unwrap(), SUBJECT);
    assert!(may_read(&mut world, id));

    let (mut world, id) = with(Some(SUBJECT), known());
    let mut speculative = authenticate.clone();
    speculative.append(bson::raw::cstr!("db"), "$external");
    let hello = rawdoc! { "hello": 1, "speculativeAuthenticate": speculative };
    let reply = world.good(id, "admin", &hello);
    assert!(reply.get_document("speculativeAuthenticate").unwrap().contains_key("dbname"));
    assert!(may_read(&mut world, id));

    let (mut world, id) = with(None, known());
    assert_eq!(world.refused(id, "$external", &authenticate), 18);
    let (mut world, id) = with(Some("CN=stranger"), known());
    assert_eq!(world.refused(id, "$external", &authenticate), 18);
    let any = Settings { any_certificate: true, ..settings(Vec::new()) };
    let (mut world, id) = with(Some("CN=stranger"), any);
    world.good(id, "$external", &authenticate);
}

#[test]
fn plain_passwords_are_for_users_from_elsewhere() {
    let mut world =
        World::new(settings(vec![User::plain("user", "pencil"), User::new("user", "x")]));
    let id = world.connect();
    for message in ["\0user\0pen", "other\0user\0pencil", "user\0pencil", "\0user\0pencil\0", ""] {
        let command = sasl_start("PLAIN", message);
        assert_eq!(world.refused(id, "$external", &command), 18, "{message:?}");
    }
    assert_eq!(world.refused(id, "admin", &sasl_start("PLAIN", "\0user\0x")), 18);
    let reply = world.good(id, "$external", &sasl_start("PLAIN", "user\0user\0pencil"));
    assert!(reply.get_bool("done").unwrap());
    assert!(may_read(&mut world, id));
}

#[test]
fn only_a_handshake_comes_before_a_login() {
    let mut world = World::new(settings(user()));
    let id = world.connect();
    for command in [rawdoc! { "ping": 1 }, rawdoc! { "hello": 1 }, rawdoc! { "buildInfo": 1 }] {
        world.good(id, "admin", &command);
    }
    let reply = world.run(id, "admin", &rawdoc! { "listDatabases": 1 });
    assert_eq!(reply.get_i32("code").unwrap(), 13);
    assert_eq!(reply.get_str("errmsg").unwrap(), "Command listDatabases requires authentication");
    assert_eq!(world.refused(id, "admin", &sasl_start("GSSAPI", "x")), 334);
    assert_eq!(world.refused(id, "admin", &sasl_continue(1, "x")), 17);
    let mut without = World::new(Settings { auth: false, ..settings(user()) });
    let id = without.connect();
    assert!(may_read(&mut without, id));
    assert_eq!(log_in(&mut without, id, Kind::Sha256, ("admin", "user", "pencil")), Ok(()));
}

// What a client has to notice (AU-33, AU-37).
#[test]
fn scram_can_go_wrong_to_order() {
    let begin = |fault: ScramFault| {
        let mut world = World::new(settings(user()));
        world.server.set_fault(world.now, Script::new(Fault::Scram(fault)).times(1));
        let id = world.connect();
        let reply = world.good(id, "admin", &sasl_start("SCRAM-SHA-256", &scram::first("user")));
        (world, id, payload(&reply))
    };
    let nonce = |fault| scram::field(&begin(fault).2, "r=").to_owned();
    assert_eq!(scram::field(&begin(ScramFault::Iterations(7)).2, "i="), "7");
    assert!(scram::NONCE.starts_with(&nonce(ScramFault::TruncatedNonce)));
    assert!(!nonce(ScramFault::ForeignNonce).starts_with(scram::NONCE));

    let finish = |fault| {
        let (mut world, id, server_first) = begin(fault);
        let (last, expected) = scram::last(Kind::Sha256, "user", "pencil", &server_first);
        let reply = world.good(id, "admin", &sasl_continue(1, &last));
        (world, id, payload(&reply), expected, reply.get_bool("done").unwrap())
    };
    let (.., got, expected, done) = finish(ScramFault::WrongSignature);
    assert!(got.starts_with("v=") && got != expected && done);
    let (.., got, _, done) = finish(ScramFault::NoSignature);
    assert!(got.is_empty() && done);
    let (.., got, _, done) = finish(ScramFault::Error);
    assert!(got == "e=other-error" && done);
    let (mut world, id, got, expected, done) = finish(ScramFault::Endless);
    assert!(got == expected && !done);
    for _ in 0..10 {
        let reply = world.good(id, "admin", &sasl_continue(1, ""));
        assert!(!reply.get_bool("done").unwrap());
    }
    // The next conversation is as it should be.
    assert_eq!(log_in(&mut world, id, Kind::Sha256, ("admin", "user", "pencil")), Ok(()));
}

#[test]
fn users_that_make_no_sense_are_told() {
    let refuse = |users| cenote_endpoint::Server::new(settings(users)).map(|_| ()).unwrap_err();
    let twice = refuse(vec![User::new("a", "1"), User::new("a", "2")]);
    assert!(matches!(twice, SettingsError::DuplicateUser { .. }));
    let none = refuse(vec![User::new("a", "1").with_mechanisms(&[])]);
    assert!(matches!(none, SettingsError::NoMechanism { .. }));
    let control = refuse(vec![User::new("a", "\u{7}")]);
    assert_eq!(control, SettingsError::Password { name: "a".to_owned() });
}

#[test]
fn no_password_is_shown() {
    let settings = settings(vec![User::new("user", "s3cr3t"), User::plain("p", "s3cr3t")]);
    assert!(!format!("{settings:?}").contains("s3cr3t"));
    let server = cenote_endpoint::Server::new(settings).unwrap();
    assert!(!format!("{server:?}").contains("s3cr3t"));
}
