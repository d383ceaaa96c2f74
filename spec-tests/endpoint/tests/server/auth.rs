//! Logging in, in every way and in vain.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bson::raw::{RawBinaryRef, cstr};
use bson::spec::BinarySubtype;
use bson::{Document, RawDocumentBuf, rawdoc};
use cenote_endpoint::{
    ConnectionId, Mechanism, Peer, ScramSettings, Settings, SettingsError, User,
};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};

use crate::server::client::World;

const FEW: ScramSettings =
    ScramSettings { sha1_iterations: 40, sha256_iterations: 50, skip_empty_exchange: true };

/// The first message of `user`.
const FIRST: &str = "n,,n=user,r=rOprNGfwEbeRWgbNEkqO";

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
    command.append(cstr!("payload"), binary(payload));
    command
}

fn sasl_continue(conversation: i32, payload: &str) -> RawDocumentBuf {
    let mut command = rawdoc! { "saslContinue": 1, "conversationId": conversation };
    command.append(cstr!("payload"), binary(payload));
    command
}

/// The last message of `user` with the password `pencil`, for SCRAM-SHA-256.
fn last(started: &Document) -> String {
    let payload = started.get_binary_generic("payload").expect("a payload");
    let server_first = std::str::from_utf8(payload).expect("UTF-8");
    let field = |name| server_first.split(',').find_map(|it| it.strip_prefix(name)).expect(name);
    let keyed = |key: &[u8], text: &str| {
        let hmac = Hmac::<Sha256>::new_from_slice(key).expect("any key");
        hmac.chain_update(text).finalize().into_bytes()
    };
    let salt = STANDARD.decode(field("s=")).expect("base64");
    let iterations = field("i=").parse().expect("a number");
    let salted = pbkdf2::pbkdf2_hmac_array::<Sha256, 32>(b"pencil", &salt, iterations);
    let client_key = keyed(&salted, "Client Key");
    let without_proof = format!("c=biws,r={}", field("r="));
    let said = format!("{},{server_first},{without_proof}", &FIRST["n,,".len()..]);
    let signature = keyed(&Sha256::digest(client_key), &said);
    let proof: Vec<u8> = client_key.iter().zip(signature).map(|(a, b)| a ^ b).collect();
    format!("{without_proof},p={}", STANDARD.encode(proof))
}

fn may_read(world: &mut World, id: ConnectionId) -> bool {
    world.run(id, "test", &rawdoc! { "find": "birds" }).get_f64("ok").expect("ok") == 1.0
}

#[test]
fn every_failure_looks_the_same() {
    let users = vec![
        User::new("user", "pencil"),
        User::new("old", "pencil").with_mechanisms(&[Mechanism::ScramSha1]),
    ];
    let mut world = World::new(settings(users));
    let id = world.connect();
    for (database, first) in
        [("admin", "n,,n=nobody,r=x"), ("test", FIRST), ("admin", "n,,n=old,r=x"), ("admin", "n")]
    {
        let start = sasl_start("SCRAM-SHA-256", first);
        assert_eq!(world.refused(id, database, &start), 18, "{database}: {first}");
    }
    let started = world.good(id, "admin", &sasl_start("SCRAM-SHA-256", FIRST));
    let conversation = started.get_i32("conversationId").expect("a conversation");
    let wrong = last(&started).replace(",p=", ",p=AAAA");
    assert_eq!(world.refused(id, "admin", &sasl_continue(conversation, &wrong)), 18);
    // A conversation that failed cannot be taken up again.
    let right = sasl_continue(conversation, &last(&started));
    assert_eq!(world.refused(id, "admin", &right), 17);
    assert!(!may_read(&mut world, id));
    assert_eq!(world.server.statistics().failed_logins, 5);
}

#[test]
fn the_empty_exchange_is_spared_only_by_both() {
    for (asks, spares) in [(true, true), (true, false), (false, true)] {
        let scram = ScramSettings { skip_empty_exchange: spares, ..FEW };
        let mut world = World::new(Settings { scram, ..settings(user()) });
        let id = world.connect();
        let mut start = sasl_start("SCRAM-SHA-256", FIRST);
        if asks {
            start.append(cstr!("options"), rawdoc! { "skipEmptyExchange": true });
        }
        let started = world.good(id, "admin", &start);
        let reply = world.good(id, "admin", &sasl_continue(1, &last(&started)));
        let is_spared = reply.get_bool("done").unwrap();
        assert_eq!((is_spared, may_read(&mut world, id)), (asks && spares, asks && spares));
        if !is_spared {
            world.good(id, "admin", &sasl_continue(1, ""));
            assert!(may_read(&mut world, id));
        }
        let status = world.good(id, "admin", &rawdoc! { "connectionStatus": 1 });
        let users = status.get_document("authInfo").unwrap().get_array("authenticatedUsers");
        assert_eq!(users.unwrap(), &vec![bson::bson!({ "user": "user", "db": "admin" })]);
        world.good(id, "admin", &rawdoc! { "logout": 1 });
        assert!(!may_read(&mut world, id));
    }
}

#[test]
fn hello_tells_the_mechanisms_and_starts_speculatively() {
    let mut world = World::new(settings(user()));
    let id = world.connect();
    let hello = |name: &str, user: &str| {
        let mut speculative = sasl_start(name, &FIRST.replace("user", user));
        speculative.append(cstr!("db"), "admin");
        rawdoc! {
            "hello": 1,
            "saslSupportedMechs": format!("admin.{user}"),
            "speculativeAuthenticate": speculative,
        }
    };
    let reply = world.good(id, "admin", &hello("SCRAM-SHA-256", "user"));
    let mechanisms = reply.get_array("saslSupportedMechs").unwrap();
    assert_eq!(mechanisms, &vec!["SCRAM-SHA-1".into(), "SCRAM-SHA-256".into()]);
    let started = reply.get_document("speculativeAuthenticate").unwrap();
    assert!(!started.contains_key("ok"));
    world.good(id, "admin", &sasl_continue(1, &last(started)));
    world.good(id, "admin", &sasl_continue(1, ""));
    assert!(may_read(&mut world, id));

    let other = world.connect();
    for hello in [hello("SCRAM-SHA-256", "nobody"), hello("PLAIN", "user")] {
        let reply = world.good(other, "admin", &hello);
        assert!(!reply.contains_key("speculativeAuthenticate"));
    }
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
