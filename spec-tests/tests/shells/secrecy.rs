//! What is left of a password in the memory of a process that has closed its pool.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::process::Command;
use std::time::{Duration, Instant};
use std::{env, thread};

use bson::rawdoc;
use cenote_core::uri::{ConnectionString, Credential};
use cenote_endpoint::{AccessToken as Accepted, AwsKey, Settings, User};
use cenote_shell::oidc::TokenRequest;
use cenote_tokio::AccessToken;

use cenote_test_runtimes::ClientSetup;

use crate::shell::{Shell, on_all_runtimes, pool_with_tokens};
use crate::world::{ping, pool, tls, with};

on_all_runtimes!(
    plain_leaves_no_password_in_memory,
    scram_leaves_no_password_in_memory,
    oidc_leaves_no_token_in_memory,
    aws_leaves_no_key_in_memory,
);

/// Only this part of it is looked for: it is also in a buffer that became too small, and behind what
/// `free` writes into a block.
const PASSWORD: &str = "pencil-and-eraser-and-ruler-and-compasses/with a percent %, long as it is";
const PART: Range<usize> = 16..28;

const CHILD: &str = "CENOTE_TEST_MASKED_URI";

// AU-60
fn plain_leaves_no_password_in_memory(shell: Shell) {
    look_for_password(shell, || User::plain("ldap", PASSWORD));
}

// AU-60
fn scram_leaves_no_password_in_memory(shell: Shell) {
    look_for_password(shell, || User::new("app", PASSWORD));
}

/// The token is in hello of the second connection.
fn oidc_leaves_no_token_in_memory(shell: Shell) {
    if let Ok(masked) = env::var(CHILD) {
        let (uri, token) = masked.split_once(' ').expect("both");
        let (uri, token) = (uri.to_owned(), token.to_owned());
        let mut again = unmasked(&token);
        use_tokens(shell, &uri, token);
        return look(&mut again);
    }
    let access_tokens = vec![Accepted::new(PASSWORD, "robot")];
    let endpoint = tls(Settings { auth: true, access_tokens, ..Settings::default() });
    let uri = with(&endpoint.uri(), "authMechanism=MONGODB-OIDC");
    in_a_child_with(&format!("{uri} {}", masked(PASSWORD.as_bytes())));
}

fn use_tokens(shell: Shell, uri: &str, masked: String) {
    let callback =
        move |_: &TokenRequest| Ok(AccessToken::new(String::from_utf8(unmasked(&masked))?));
    let pool = pool_with_tokens(shell, uri, callback, None);
    let mut held = [(); 2].map(|()| pool.check_out().expect("a connection"));
    for connection in &mut held {
        connection.command("zoo", &rawdoc! { "count": "birds" }).expect("it is logged in");
        connection.reauthenticate().expect("it is accepted again");
    }
    drop(held);
    pool.close();
}

fn aws_leaves_no_key_in_memory(shell: Shell) {
    if let Ok(masked) = env::var(CHILD) {
        let (uri, key) = masked.split_once(' ').expect("both");
        let (uri, key) = (uri.to_owned(), key.to_owned());
        let mut again = unmasked(&key);
        use_keys(shell, &uri, key);
        return look(&mut again);
    }
    let aws_keys = vec![AwsKey::new("AKIA", PASSWORD)];
    let endpoint = tls(Settings { auth: true, aws_keys, ..Settings::default() });
    let uri = with(&endpoint.uri(), "authMechanism=MONGODB-AWS");
    in_a_child_with(&format!("{uri} {}", masked(PASSWORD.as_bytes())));
}

fn use_keys(shell: Shell, uri: &str, masked: String) {
    let provider = move || {
        let secret = String::from_utf8(unmasked(&masked))?;
        Ok(Credential::of_aws_keys("AKIA", secret.into(), None))
    };
    let setup = ClientSetup { aws_keys: Some(Box::new(provider)), ..ClientSetup::default() };
    let client = shell.build_client(uri, setup).expect("good options");
    client.command("zoo", &rawdoc! { "count": "birds" }).expect("it is logged in");
    client.close();
}

/// Of its text only, before anything else uses the memory again.
#[test]
fn a_connection_string_leaves_no_password_in_memory() {
    if let Ok(masked) = env::var(CHILD) {
        let mut uri = unmasked(&masked);
        drop(std::str::from_utf8(&uri).unwrap().parse::<ConnectionString>().unwrap());
        return look(&mut uri);
    }
    let escaped = PASSWORD.replace('%', "%25").replace('/', "%2F").replace(' ', "%20");
    let escaped = escaped.replace(',', "%2C");
    in_a_child(&format!("mongodb://app:{escaped}@localhost/"));
}

fn look_for_password(shell: Shell, user: impl FnOnce() -> User) {
    if let Ok(masked) = env::var(CHILD) {
        let mut uri = unmasked(&masked);
        use_pool(shell, std::str::from_utf8(&uri).expect("UTF-8"));
        return look(&mut uri);
    }
    let settings = Settings { auth: true, users: vec![user()], ..Settings::default() };
    let endpoint = tls(settings);
    in_a_child(&endpoint.uri());
}

/// Repeats the test in a process that has never had the password but in this connection string.
fn in_a_child(uri: &str) {
    in_a_child_with(&masked(uri.as_bytes()));
}

fn in_a_child_with(masked: &str) {
    let test = thread::current().name().expect("that of the test").to_owned();
    let mut child = Command::new(env::current_exe().expect("this test"));
    child.args([test.as_str(), "--exact", "--nocapture"]).env(CHILD, masked);
    let output = child.output().expect("it runs");
    let printed = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && printed.contains("1 passed"), "{printed}{errors}");
}

fn use_pool(shell: Shell, uri: &str) {
    let (pool, _events) = pool(shell, uri);
    assert!(ping(&pool));
    pool.close();
}

fn look(uri: &mut [u8]) {
    // So that the search is known to find what is there.
    assert!(!copies_in_memory().is_empty(), "the connection string");
    uri.fill(0);
    std::hint::black_box(&uri);
    // Tasks that were stopped drop what they have when the runtime comes to it.
    let end = Instant::now() + Duration::from_secs(10);
    while !copies_in_memory().is_empty() && Instant::now() < end {
        thread::sleep(Duration::from_millis(10));
    }
    let copies = copies_in_memory();
    assert!(copies.is_empty(), "{copies:#?}");
}

const MASK: u8 = 0x5A;

fn masked(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{:02x}", byte ^ MASK)).collect()
}

fn unmasked(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len() / 2);
    let digits = text.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).expect("digits"));
    bytes.extend(digits.map(|pair| u8::from_str_radix(pair, 16).expect("digits") ^ MASK));
    bytes
}

/// Where that part of the password is in writable memory. Without a copy of it.
fn copies_in_memory() -> Vec<String> {
    const CHUNK: usize = 1 << 16;
    let mut memory = File::open("/proc/self/mem").expect("Linux");
    let mut buffer = vec![0; CHUNK + PART_LENGTH];
    let own = buffer.as_ptr().addr();
    let own = own..own + buffer.len();
    let mut copies = Vec::new();
    for line in fs::read_to_string("/proc/self/maps").expect("Linux").lines() {
        let (range, rest) = line.split_once(' ').expect("a range");
        let (start, end) = range.split_once('-').expect("a range");
        let address = |text| usize::from_str_radix(text, 16).expect("an address");
        let (mut at, end) = (address(start), address(end));
        while rest.starts_with("rw") && at < end {
            let count = (end - at).min(CHUNK + PART_LENGTH);
            let chunk = &mut buffer[..count];
            memory.seek(SeekFrom::Start(at as u64)).expect("Linux");
            if memory.read_exact(chunk).is_err() {
                break; // Some of the kernel's own cannot be read.
            }
            let places = chunk.windows(PART_LENGTH).enumerate().filter(|(_, window)| {
                window[0] ^ MASK == MASKED[0]
                    && window.iter().zip(MASKED).all(|(byte, masked)| byte ^ MASK == masked)
            });
            let found = places.map(|(index, _)| at + index);
            copies.extend(
                found.filter(|place| !own.contains(place)).map(|it| format!("{it:x} {rest}")),
            );
            at += CHUNK;
        }
    }
    copies
}

/// The part of the password, masked when the test is compiled.
const MASKED: [u8; PART_LENGTH] = {
    let mut bytes = [0; PART_LENGTH];
    let mut index = 0;
    while index < PART_LENGTH {
        bytes[index] = PASSWORD.as_bytes()[PART.start + index] ^ MASK;
        index += 1;
    }
    bytes
};

const PART_LENGTH: usize = PART.end - PART.start;
