//! Authentication that succeeds, or is refused by the server.

use bson::{Document, doc, oid::ObjectId};
use cenote_core::connect::{
    DerivedKeys, Establish, KeyDerivation, ProxyStep, ScramCache, ServerKind, Socks5, Step,
};
use cenote_core::error::{RetryWrites, Stage};
use cenote_core::pool::ServiceId;
use cenote_core::uri::Mechanism;

use crate::connect::server::{Outcome, Server, converse, establish, raw};

const SCRAM: [Mechanism; 2] = [Mechanism::ScramSha1, Mechanism::ScramSha256];

pub(crate) fn play(uri: &str, mut server: Server) -> Outcome {
    converse(establish(uri), &mut ScramCache::default(), |command| server.answer(command))
}

pub(crate) fn names(commands: &[Document]) -> Vec<&str> {
    commands.iter().filter_map(|command| command.keys().next()).map(String::as_str).collect()
}

// HS-42, HS-45, AU-01, AU-08, AU-20 to AU-22, AU-37
#[test]
fn scram_in_all_its_lengths() {
    for mechanism in SCRAM {
        let uri = format!("mongodb://user:pencil@db/shop?authMechanism={}", mechanism.name());
        for (speculates, empty_exchange) in
            [(true, false), (true, true), (false, false), (false, true)]
        {
            let mut expected = vec!["isMaster", "saslStart", "saslContinue", "saslContinue"];
            expected.truncate(if empty_exchange { 4 } else { 3 });
            if speculates {
                expected.remove(1);
            }
            let server = Server { speculates, empty_exchange, ..Server::new(mechanism) };
            let outcome = play(&uri, server);
            assert_eq!(outcome.result.unwrap().mechanism, Some(mechanism));
            assert_eq!(outcome.handshaken.unwrap().mechanism, None, "not yet");
            assert_eq!(names(&outcome.commands), expected);
            assert!(outcome.commands[1..].iter().all(|it| it.get_str("$db").ok() == Some("shop")));
        }
    }
}

// HS-41, HS-43, HS-46, HS-47, AU-10, AU-11, AU-41
// Reports morphium#167: a server that lists no mechanisms is refused.
#[test]
fn without_a_mechanism_the_server_is_asked() {
    let uri = "mongodb://user:pencil@db";
    let lists = [
        (doc! { "saslSupportedMechs": ["SCRAM-SHA-1", "SCRAM-SHA-256"] }, Mechanism::ScramSha256),
        (doc! { "saslSupportedMechs": ["NEW", 5, "SCRAM-SHA-256"] }, Mechanism::ScramSha256),
        (doc! { "saslSupportedMechs": ["SCRAM-SHA-1"] }, Mechanism::ScramSha1),
        (doc! { "saslSupportedMechs": ["PLAIN"] }, Mechanism::ScramSha1),
        (doc! { "saslSupportedMechs": "SCRAM-SHA-256" }, Mechanism::ScramSha1),
        (doc! {}, Mechanism::ScramSha1),
    ];
    for (list, mechanism) in lists {
        let mut server = Server::new(mechanism);
        server.hello.extend(list);
        let outcome = play(uri, server);
        assert_eq!(outcome.result.unwrap().mechanism, Some(mechanism));
        let hello = &outcome.commands[0];
        assert_eq!(hello.get_str("saslSupportedMechs").ok(), Some("admin.user"));
        let speculative = hello.get_document("speculativeAuthenticate").unwrap();
        assert_eq!(speculative.get_str("mechanism").ok(), Some("SCRAM-SHA-256"));
    }
}

// HS-47: a conversation that was dropped is not gone on with, and no nonce is used twice.
#[test]
fn what_was_speculated_in_vain_is_dropped() {
    let mut server = Server::new(Mechanism::ScramSha1);
    server.hello = doc! {
        "ok": 1, "saslSupportedMechs": ["SCRAM-SHA-1"],
        "speculativeAuthenticate": { "conversationId": 99, "done": "nonsense" },
    };
    let outcome = play("mongodb://user:pencil@db", server);
    assert_eq!(outcome.result.unwrap().mechanism, Some(Mechanism::ScramSha1));
    assert_eq!(names(&outcome.commands), ["isMaster", "saslStart", "saslContinue"]);
    let speculative = outcome.commands[0].get_document("speculativeAuthenticate").unwrap();
    assert_ne!(speculative.get("payload"), outcome.commands[1].get("payload"));
}

// AU-36
#[test]
fn a_result_is_computed_once() {
    let mut cache = ScramCache::default();
    assert!(cache.is_empty());
    for _ in 0..3 {
        for mechanism in SCRAM {
            let uri = format!("mongodb://user:pencil@db/?authMechanism={}", mechanism.name());
            let mut server = Server::new(mechanism);
            let outcome = converse(establish(&uri), &mut cache, |it| server.answer(it));
            assert!(outcome.result.is_ok());
        }
        assert_eq!((cache.len(), cache.is_empty()), (2, false), "one for each mechanism");
    }
}

// AU-41, AU-12, ER-31: a refusal after hello is authentication's.
#[test]
fn a_wrong_password_is_refused_by_the_server() {
    for mechanism in SCRAM {
        let uri = format!("mongodb://user:wrong@db/?authMechanism={}", mechanism.name());
        let error = play(&uri, Server::new(mechanism)).result.unwrap_err();
        assert_eq!(error.stage(), Stage::Authentication);
        assert_eq!(error.command_error().and_then(|it| it.code), Some(18));
        assert_eq!(error.labels(RetryWrites::Enabled).count(), 0);
    }
}

// AU-45 to AU-47
#[test]
fn x509() {
    let cases = [
        ("mongodb://db/?authMechanism=MONGODB-X509", doc! {}),
        ("mongodb://CN%3Dme@db/?authMechanism=MONGODB-X509", doc! { "user": "CN=me" }),
    ];
    for (uri, user) in cases {
        let mut authenticate = doc! { "authenticate": 1, "mechanism": "MONGODB-X509" };
        authenticate.extend(user);
        for speculates in [true, false] {
            let outcome = converse(establish(uri), &mut ScramCache::default(), |command| {
                match command.get_document("speculativeAuthenticate") {
                    Ok(speculative) if speculates => {
                        assert_eq!(speculative, &authenticate);
                        doc! { "ok": 1, "speculativeAuthenticate": { "dbname": "$external" } }
                    }
                    _ => doc! { "ok": 1 },
                }
            });
            assert_eq!(outcome.result.unwrap().mechanism, Some(Mechanism::MongodbX509));
            assert_eq!(outcome.commands.len(), if speculates { 1 } else { 2 });
            if !speculates {
                authenticate.insert("$db", "$external");
                assert_eq!(outcome.commands[1], authenticate);
            }
        }
    }
}

// AU-50, AU-51, CF-47: and never within hello (HS-44).
#[test]
fn plain() {
    let databases = [("", "$external"), ("/shop", "shop"), ("/shop?authSource=ldap", "ldap")];
    for (path, source) in databases {
        let option = if path.contains('?') {
            "&"
        } else if path.is_empty() {
            "/?"
        } else {
            "?"
        };
        let uri = format!("mongodb://us,er:pen=cil@db{path}{option}authMechanism=PLAIN");
        let outcome = converse(
            establish(&uri),
            &mut ScramCache::default(),
            |command| match command.keys().next().map(String::as_str) {
                Some("saslStart") => doc! {
                    "ok": 1, "conversationId": 1, "done": true, "payload": crate::connect::server::binary(b""),
                },
                _ => doc! { "ok": 1 },
            },
        );
        assert_eq!(outcome.result.unwrap().mechanism, Some(Mechanism::Plain));
        assert!(!outcome.commands[0].contains_key("speculativeAuthenticate"));
        assert!(!outcome.commands[0].contains_key("saslSupportedMechs"));
        let payload = crate::connect::server::binary(b"\0us,er\0pen=cil");
        let expected = doc! {
            "saslStart": 1, "mechanism": "PLAIN", "payload": payload, "autoAuthorize": 1,
            "$db": source,
        };
        assert_eq!(outcome.commands[1], expected);
    }
}

// AU-30, AU-37: names are not prepared, and cannot end an attribute.
#[test]
fn names_are_escaped_and_otherwise_left_alone() {
    let uri = "mongodb://%E2%85%A8%2C%3D%C2%AD:pencil@db/?authMechanism=SCRAM-SHA-256";
    let mut establish = establish(uri);
    let Ok(Step::Send(hello)) = establish.next_step() else { panic!("hello comes first") };
    let hello = Document::try_from(hello.body()).unwrap();
    let speculative = hello.get_document("speculativeAuthenticate").unwrap();
    let payload = speculative.get_binary_generic("payload").unwrap();
    let expected = "n,,n=\u{2168}=2C=3D\u{AD},r=";
    assert!(payload.starts_with(expected.as_bytes()), "{}", String::from_utf8_lossy(payload));
}

// AU-32, AU-40
#[test]
fn passwords_are_prepared_for_sha_256() {
    // All of them are `pencil` after SASLprep: a soft hyphen goes, a wide letter becomes narrow.
    for password in ["pencil", "pen%C2%ADcil", "%EF%BD%90encil"] {
        let uri = format!("mongodb://user:{password}@db/?authMechanism=SCRAM-SHA-256");
        assert!(play(&uri, Server::new(Mechanism::ScramSha256)).result.is_ok(), "{password}");
    }
    let uri = "mongodb://user:pen%C2%ADcil@db/?authMechanism=SCRAM-SHA-1";
    assert!(play(uri, Server::new(Mechanism::ScramSha1)).result.is_err(), "not for SHA-1 (AU-31)");
}

// Keys are derived once for all conversations that wait for the same, and without a lock (AU-36).
#[test]
fn keys_are_derived_once_for_all() {
    let mut cache = ScramCache::default();
    let mut server = Server::new(Mechanism::ScramSha256);
    let uri = "mongodb://user:pencil@db/?authMechanism=SCRAM-SHA-256";
    let first = converse(establish(uri), &mut cache, |it| server.answer(it));
    assert!(first.result.is_ok());
    let mut second = establish(uri);
    let mut server = Server::new(Mechanism::ScramSha256);
    let mut commands = 0;
    loop {
        match second.next_step().unwrap() {
            Step::Send(command) => {
                commands += 1;
                let command = Document::try_from(command.body()).unwrap();
                second.reply(&raw(&server.answer(&command)), &mut cache);
            }
            Step::Receive => panic!("answered at once"),
            Step::Derive(_) => panic!("it is known"),
            Step::Token { .. } => panic!("SCRAM has none"),
            Step::Handshaken(_) => {}
            Step::Done(_) => break,
        }
    }
    assert_eq!((commands, cache.len()), (2, 1));
}

/// PBKDF2 can be left to another thread, with everything that belongs to it.
#[test]
fn everything_can_go_to_another_thread() {
    const fn goes<T: Send + 'static>() {}
    goes::<Establish>();
    goes::<Step>();
    goes::<KeyDerivation>();
    goes::<DerivedKeys>();
    goes::<ScramCache>();
    goes::<Socks5>();
    goes::<ProxyStep>();
}

// AU-02: an arbiter knows no users.
#[test]
fn no_authentication_at_an_arbiter() {
    let mut server = Server::new(Mechanism::ScramSha256);
    server.hello = doc! { "ok": 1, "setName": "rs", "arbiterOnly": true };
    let outcome = play("mongodb://user:pencil@db", server);
    assert_eq!(outcome.commands.len(), 1);
    let description = outcome.result.unwrap();
    assert_eq!((description.kind, description.mechanism), (ServerKind::RsArbiter, None));
}

// LB-21: the pool learns of the service before the failure that concerns it.
#[test]
fn the_service_is_known_when_authentication_fails() {
    let service = ObjectId::from_bytes([5; 12]);
    let mut server = Server {
        lie: Box::new(|_, it| drop(it.remove("done"))),
        ..Server::new(Mechanism::ScramSha256)
    };
    server.hello = doc! { "ok": 1, "serviceId": service };
    let outcome =
        play("mongodb://user:pencil@db/?loadBalanced=true&authMechanism=SCRAM-SHA-256", server);
    assert_eq!(outcome.handshaken.unwrap().service_id, Some(ServiceId([5; 12])));
    let error = outcome.result.unwrap_err();
    assert_eq!(error.to_string(), "authentication: the reply has no `done`");
}
