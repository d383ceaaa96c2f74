//! MONGODB-AWS with keys of a provider and of the environment, against an endpoint that verifies signatures.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bson::{Document, RawDocumentBuf, rawdoc};
use cenote_core::client::{ClientError, Selector};
use cenote_core::uri::Credential;
use cenote_endpoint::{AwsKey, Endpoint, ListenOptions, Settings};
use cenote_test_runtimes::alone_with;

use crate::shells::{AnyClient, ClientSetup, Shell, on_all_runtimes};

on_all_runtimes!(
    keys_with_and_without_a_token,
    keys_that_are_refused,
    hosts_that_are_no_hosts,
    keys_in_the_wrong_place,
);

const ACCESS: &str = "AKIAI44QH8DHBEXAMPLE";
const SECRET: &str = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
const TOKEN: &str = "AQoDYXdzEJr";

fn endpoint(key: AwsKey, sts_host: &str) -> Endpoint {
    let sts_host = sts_host.to_owned();
    let settings = Settings { auth: true, aws_keys: vec![key], sts_host, ..Settings::default() };
    Endpoint::start(settings, ListenOptions::default()).expect("it starts")
}

fn uri(endpoint: &Endpoint) -> String {
    format!("mongodb://{}/?authMechanism=MONGODB-AWS", endpoint.address())
}

fn keys(access: &str, secret: &str, token: Option<&str>) -> Credential {
    let token = token.map(|token| token.to_owned().into());
    Credential::of_aws_keys(access, secret.to_owned().into(), token)
}

/// A client whose provider returns these keys each time.
fn client(shell: Shell, uri: &str, keys: &Credential) -> Box<dyn AnyClient> {
    let keys = keys.clone();
    let setup = ClientSetup {
        aws_keys: Some(Box::new(move || Ok(keys.clone()))),
        ..ClientSetup::default()
    };
    shell.build_client(uri, setup).expect("good options")
}

fn count(client: &dyn AnyClient) -> Result<RawDocumentBuf, ClientError> {
    client.command("zoo", &rawdoc! { "count": "birds" })
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
        let its = keys(ACCESS, SECRET, token);
        let client = client(shell, &uri(&endpoint), &its);
        count(&*client).expect("it is logged in");
        let connection = client.check_out(&Selector::Primary).expect("it is logged in");
        assert!(!format!("{:?}", connection).contains(TOKEN));
        drop(connection);
        let status = client.command("admin", &rawdoc! { "connectionStatus": 1 }).expect("a reply");
        let status = Document::try_from(&status).expect("BSON").to_string();
        assert!(status.contains(ACCESS), "{status}");
        client.close();
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
        let its = keys(ACCESS, secret, token);
        let client = client(shell, &uri(&endpoint), &its);
        let error = count(&*client).expect_err("it is refused");
        let shown = format!("{error} {error:?}");
        assert!(shown.contains("code 18"), "{shown}");
        for hidden in ["hunter2", "wJalrX", TOKEN] {
            assert!(!shown.contains(hidden), "{shown}");
        }
        client.close();
    }
}

// AW-05
fn hosts_that_are_no_hosts(shell: Shell) {
    for host in ["", "abc..def", ".abc.def", "abc.def.", "a\nhost:evil"] {
        let endpoint = endpoint(AwsKey::new(ACCESS, SECRET), host);
        let its = keys(ACCESS, SECRET, None);
        let client = client(shell, &uri(&endpoint), &its);
        let error = count(&*client).expect_err("it is not signed");
        let expected = "the host of AWS STS that the server names has";
        assert!(error.to_string().contains(expected), "{error}");
        assert_eq!(
            endpoint.with(|server, _| server.statistics().commands.get("saslContinue").copied()),
            None
        );
        client.close();
    }
}

/// Keys are neither in connection strings nor in credentials, and a provider is for one mechanism.
// AW-01, AW-02
fn keys_in_the_wrong_place(shell: Shell) {
    let host = "127.0.0.1:1/?authMechanism=MONGODB-AWS";
    let must_not = "keys of AWS must not stand in the connection string";
    let provided = |uri: &str| {
        let provider = || Ok(keys(ACCESS, SECRET, None));
        let setup = ClientSetup { aws_keys: Some(Box::new(provider)), ..ClientSetup::default() };
        shell.build_client(uri, setup).err().expect("it is refused").to_string()
    };
    let with_keys = format!("mongodb://{ACCESS}:hunter2@{host}");
    let error = shell.build_client(&with_keys, ClientSetup::default()).err();
    let error = error.expect("it is refused").to_string();
    assert!(error.contains(must_not) && !error.contains("hunter2"), "{error}");
    let error = provided(&with_keys);
    assert!(error.contains(must_not), "{error}");
    let error = provided("mongodb://127.0.0.1:1");
    assert!(error.contains("a provider of keys of AWS is for MONGODB-AWS"), "{error}");

    let endpoint = endpoint(AwsKey::new(ACCESS, SECRET), "sts.amazonaws.com");
    let calls = Arc::new(AtomicUsize::new(0));
    let called = Arc::clone(&calls);
    let provider = move || match called.fetch_add(1, Ordering::Relaxed) {
        0 => Err("no role".into()),
        _ => Ok(keys(ACCESS, SECRET, None)),
    };
    let setup = ClientSetup { aws_keys: Some(Box::new(provider)), ..ClientSetup::default() };
    let client = shell.build_client(&uri(&endpoint), setup).expect("good options");
    let error = count(&*client).expect_err("the provider fails").to_string();
    assert!(error.contains("the provider of keys of AWS failed: no role"), "{error}");
    crate::world::until_so(|| count(&*client).map(drop).map_err(|error| error.to_string()));
    let its = keys(ACCESS, "hunter2", None);
    let error = client.replace_credential(its).expect_err("not there").to_string();
    assert!(error.contains(must_not), "{error}");
    client.close();
}

/// They are read for each connection.
// AW-01
#[test]
fn keys_of_the_environment() {
    let variables = [
        ("AWS_ACCESS_KEY_ID", ACCESS),
        ("AWS_SECRET_ACCESS_KEY", SECRET),
        ("AWS_SESSION_TOKEN", TOKEN),
    ];
    alone_with(&variables, || {
        let key = AwsKey::new(ACCESS, SECRET).with_session_token(TOKEN);
        for shell in Shell::ALL {
            let endpoint = endpoint(key.clone(), "sts.amazonaws.com");
            let client = shell.build_client(&uri(&endpoint), ClientSetup::default());
            let client = client.expect("good options");
            count(&*client).expect("it is logged in");
            client.close();
        }
    });
}

// AW-01
#[test]
fn keys_that_the_environment_lacks() {
    alone_with(&[("AWS_ACCESS_KEY_ID", ACCESS), ("AWS_SECRET_ACCESS_KEY", "")], || {
        for shell in Shell::ALL {
            let endpoint = endpoint(AwsKey::new(ACCESS, SECRET), "sts.amazonaws.com");
            let client = shell.build_client(&uri(&endpoint), ClientSetup::default());
            let client = client.expect("good options");
            let error = count(&*client).expect_err("a key is missing").to_string();
            assert!(error.contains("lacks AWS_SECRET_ACCESS_KEY in the environment"), "{error}");
            client.close();
        }
    });
}
