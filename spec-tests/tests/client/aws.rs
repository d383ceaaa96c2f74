//! MONGODB-AWS with the keys of the connection string, against an endpoint that verifies signatures.

use bson::{Document, rawdoc};
use cenote_core::client::Selector;
use cenote_endpoint::{AwsKey, Endpoint, ListenOptions, Settings};

use crate::shells::{Shell, on_all_runtimes};
use crate::world::World;

on_all_runtimes!(keys_with_and_without_a_token, keys_that_are_refused, hosts_that_are_no_hosts);

const ACCESS: &str = "AKIAI44QH8DHBEXAMPLE";
const SECRET: &str = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
const TOKEN: &str = "AQoDYXdzEJr";

fn endpoint(key: AwsKey, sts_host: &str) -> Endpoint {
    let sts_host = sts_host.to_owned();
    let settings = Settings { auth: true, aws_keys: vec![key], sts_host, ..Settings::default() };
    Endpoint::start(settings, ListenOptions::default()).expect("it starts")
}

fn uri(endpoint: &Endpoint, secret: &str, token: Option<&str>) -> String {
    let (address, secret) = (endpoint.address(), secret.replace('/', "%2F"));
    let token = token.map(|it| format!("&authMechanismProperties=AWS_SESSION_TOKEN:{it}"));
    let token = token.unwrap_or_default();
    format!("mongodb://{ACCESS}:{secret}@{address}/?authMechanism=MONGODB-AWS{token}")
}

// AU-55, AW-03, AW-06, AW-07, AW-08
fn keys_with_and_without_a_token(shell: Shell) {
    for (token, host) in [
        (None, "sts.amazonaws.com"),
        (Some(TOKEN), "sts.amazonaws.com"),
        (Some(TOKEN), "sts.us-west-2.amazonaws.com"),
        (None, "localhost"),
    ] {
        let key = AwsKey::new(ACCESS, SECRET);
        let key = token.map_or(key.clone(), |token| key.with_session_token(token));
        let endpoint = endpoint(key, host);
        let world = World::new(shell, &uri(&endpoint, SECRET, token));
        world.command(&rawdoc! { "count": "birds" }).expect("it is logged in");
        let connection = world.check_out(&Selector::Primary);
        assert!(!format!("{:?}", connection).contains(TOKEN));
        drop(connection);
        let status = world.command(&rawdoc! { "connectionStatus": 1 }).expect("a reply");
        let status = Document::try_from(&status).expect("BSON").to_string();
        assert!(status.contains(ACCESS), "{status}");
        world.client.close();
    }
}

/// A wrong secret, a token that is missing, and one too many.
// AW-07, AW-08
fn keys_that_are_refused(shell: Shell) {
    let with_token = || AwsKey::new(ACCESS, SECRET).with_session_token(TOKEN);
    for (key, secret, token) in [
        (AwsKey::new(ACCESS, SECRET), "hunter2wrong", None),
        (with_token(), SECRET, None),
        (with_token(), SECRET, Some("hunter2wrong")),
        (AwsKey::new(ACCESS, SECRET), SECRET, Some("hunter2wrong")),
        (AwsKey::new("AKIAOTHER", SECRET), SECRET, None),
    ] {
        let endpoint = endpoint(key, "sts.amazonaws.com");
        let world = World::new(shell, &uri(&endpoint, secret, token));
        let error = world.command(&rawdoc! { "count": "birds" }).expect_err("it is refused");
        let shown = format!("{error} {error:?}");
        assert!(shown.contains("code 18"), "{shown}");
        for hidden in ["hunter2", "wJalrX", TOKEN] {
            assert!(!shown.contains(hidden), "{shown}");
        }
        world.client.close();
    }
}

// AW-05
fn hosts_that_are_no_hosts(shell: Shell) {
    for host in ["", "abc..def", ".abc.def", "abc.def.", "a\nhost:evil"] {
        let endpoint = endpoint(AwsKey::new(ACCESS, SECRET), host);
        let world = World::new(shell, &uri(&endpoint, SECRET, None));
        let error = world.command(&rawdoc! { "count": "birds" }).expect_err("it is not signed");
        let expected = "the host of AWS STS that the server names has";
        assert!(error.to_string().contains(expected), "{error}");
        assert_eq!(
            endpoint.with(|server, _| server.statistics().commands.get("saslContinue").copied()),
            None
        );
        world.client.close();
    }
}
