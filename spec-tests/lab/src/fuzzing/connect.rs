//! Arbitrary bytes from servers and proxies: no panic, and every conversation ends.

use std::sync::Arc;
use std::time::Duration;

use bson::spec::BinarySubtype;
use bson::{Binary, RawDocument, RawDocumentBuf, rawdoc};
use cenote_core::address::ServerAddress;
use cenote_core::connect::{
    AccessToken, ClientMetadata, Command, ConnectionDescription, Environment, Establish,
    EstablishOptions, MIN_ITERATIONS, Nonce, ProxyStep, ScramCache, Socks5, Step,
};
use cenote_core::error::{CommandError, ConnectionError, Stage};
use cenote_core::sdam::{Context, monitor_verdict, verdict};
use cenote_core::uri::{ConnectionString, ProxyCredential};

/// The bytes are the reply to hello and to all further commands. The first byte chooses the
/// client's options. The length and the end of the document are corrected, because the wire format
/// checks them.
pub fn hello_reply(data: &[u8]) {
    const URIS: [&str; 5] = [
        "mongodb://db/?compressors=zstd,zlib,snappy",
        "mongodb://db/?loadBalanced=true",
        "mongodb://user:pencil@db",
        "mongodb://user:pencil@db/?authMechanism=PLAIN",
        "mongodb://db/?authMechanism=MONGODB-X509",
    ];
    let Some((choice, bytes)) = data.split_first() else { return };
    let Some(reply) = with_honest_frame(bytes) else { return };
    let reply = RawDocument::from_bytes(&reply).expect("its frame was corrected");
    ask_again(reply);
    judge(reply);
    run(URIS[usize::from(*choice) % URIS.len()], |_| reply.to_owned());
}

/// A monitor processes the reply, and sends its next command.
fn ask_again(reply: &RawDocument) {
    let options = options("mongodb://db");
    let Ok(server) = ConnectionDescription::from_reply(reply, &options) else { return };
    let name = if server.hello_ok { "hello" } else { "isMaster" };
    assert_eq!(Command::check(&options, &server).name(), name);
    let awaited = Command::awaited_check(&options, &server, Duration::from_secs(10));
    assert_eq!(awaited.is_some(), server.topology_version.is_some());
}

/// If it is a refusal, of whatever: its text is one line, and each question about it has an answer.
fn judge(reply: &RawDocument) {
    let Some(refusal) = CommandError::from_reply(reply) else { return };
    for stage in Stage::ALL {
        let error = ConnectionError::command(stage, refusal.clone());
        assert!(!error.is_network_error());
        assert_eq!(error.to_string().lines().count(), 1);
        for load_balanced in [false, true] {
            let context =
                Context { load_balanced, current_generation: true, topology_version: None };
            let _ = verdict(&context, &error);
        }
        let _ = monitor_verdict(&error);
    }
}

/// The bytes are the server's messages of a SCRAM conversation: payloads separated by NUL, with `@`
/// for the client's nonce. The first byte chooses the mechanism, whether hello starts the
/// conversation, and which payload claims to be the last.
pub fn scram(data: &[u8]) {
    let Some((choice, payloads)) = data.split_first() else { return };
    let (speculates, sha_1) = (choice & 1 == 0, choice & 2 == 0);
    let last = usize::from(choice >> 2) % 4;
    let nonce = if speculates { FIRST_NONCE } else { SECOND_NONCE };
    let payloads: Vec<_> = payloads.split(|byte| *byte == 0).map(|it| expand(it, nonce)).collect();
    let mut told = 0;
    let mut answer = || {
        let bytes = payloads.get(told).cloned().unwrap_or_default();
        let payload = Binary { subtype: BinarySubtype::Generic, bytes };
        told += 1;
        rawdoc! { "ok": 1, "conversationId": 1, "done": told > last, "payload": payload }
    };
    let mechanism = if sha_1 { "SCRAM-SHA-1" } else { "SCRAM-SHA-256" };
    let uri = format!("mongodb://user:pencil@db/?authMechanism={mechanism}");
    run(&uri, |command| match command {
        "isMaster" if speculates => rawdoc! { "ok": 1, "speculativeAuthenticate": answer() },
        "isMaster" => rawdoc! { "ok": 1 },
        _ => answer(),
    });
}

/// The bytes come from a proxy. The first one chooses how they are cut, and whether there is a
/// login.
pub fn socks5(data: &[u8]) {
    let Some((choice, mut bytes)) = data.split_first() else { return };
    let credential = (choice & 1 == 0).then(credential);
    let server = ServerAddress::tcp("db.example.com", 27017).expect("a name");
    let mut socks5 = Socks5::new(&server, credential.as_ref()).expect("it fits");
    let mut requests = 0;
    loop {
        match socks5.next_step() {
            Ok(ProxyStep::Send(bytes)) => {
                requests += 1;
                assert!(requests <= 3 && !bytes.as_slice().is_empty());
            }
            Ok(ProxyStep::Receive) if bytes.is_empty() => return,
            Ok(ProxyStep::Receive) => {
                let (piece, rest) =
                    bytes.split_at(bytes.len().min(usize::from(choice >> 1).max(1)));
                let taken = socks5.received(piece);
                assert!(taken == piece.len() || connected(&mut socks5));
                bytes = rest;
            }
            Ok(ProxyStep::Connected) => {
                assert_eq!(socks5.received(bytes), 0, "the rest is the server's");
                return;
            }
            Err(error) => {
                assert_eq!(error.stage(), Stage::Proxy);
                return;
            }
        }
    }
}

fn connected(socks5: &mut Socks5) -> bool {
    matches!(socks5.next_step(), Ok(ProxyStep::Connected))
}

fn credential() -> ProxyCredential {
    let uri = "mongodb://db/?proxyHost=p&proxyUsername=user&proxyPassword=pencil";
    let proxy = ConnectionString::parse(uri).expect("a valid connection string").proxy;
    proxy.and_then(|proxy| proxy.credential).expect("the string has a login")
}

const FIRST_NONCE: &str = "first-nonce";
const SECOND_NONCE: &str = "second-nonce";

/// Runs the conversation to its end. The limit of iterations is low, so that a run is short.
fn run(uri: &str, mut answer: impl FnMut(&str) -> RawDocumentBuf) {
    let mut options = options(uri);
    options.max_scram_iterations = MIN_ITERATIONS;
    let nonces = [FIRST_NONCE, SECOND_NONCE].map(|text| Nonce::from_text(text).expect("ASCII"));
    let mut establish = Establish::new(Arc::new(options), nonces).expect("valid options");
    let mut cache = ScramCache::default();
    let mut command = "";
    for _ in 0..16 {
        match establish.next_step() {
            Ok(Step::Send(next)) => command = next.name(),
            Ok(Step::Receive) => establish.reply(&answer(command), &mut cache),
            Ok(Step::Derive(derivation)) => establish.derived(derivation.run(), &mut cache),
            Ok(Step::Token { .. }) => establish.token(AccessToken::new("token")),
            Ok(Step::Handshaken(description)) => assert_eq!(description.mechanism, None),
            Ok(Step::Done(_)) => return,
            Err(error) => {
                assert!(error.stage().is_establishing());
                assert_eq!(error.to_string().lines().count(), 1);
                return;
            }
        }
    }
    panic!("the conversation does not end");
}

fn options(uri: &str) -> EstablishOptions {
    let uri = ConnectionString::parse(uri).expect("a valid connection string");
    let client = ClientMetadata::new(None, &Environment::default()).expect("no name");
    EstablishOptions::new(&uri, &client)
}

/// A payload in which `@` is replaced by the client's nonce, which a fuzzer could not guess.
fn expand(payload: &[u8], nonce: &str) -> Vec<u8> {
    let mut expanded = Vec::new();
    for byte in payload {
        match byte {
            b'@' => expanded.extend_from_slice(nonce.as_bytes()),
            other => expanded.push(*other),
        }
    }
    expanded
}

/// `None` if there is no room for a document.
fn with_honest_frame(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut framed = bytes.to_vec();
    let length = i32::try_from(framed.len()).ok()?;
    framed.first_chunk_mut::<4>()?.copy_from_slice(&length.to_le_bytes());
    *framed.get_mut(4..)?.last_mut()? = 0;
    Some(framed)
}

#[cfg(test)]
mod tests {
    use super::{hello_reply, scram, socks5};

    /// Each target gets as far as possible with its first inputs.
    #[test]
    fn seeds() {
        for choice in 0..=u8::MAX {
            hello_reply(&[&[choice][..], &bson::rawdoc! { "ok": 1 }.into_bytes()].concat());
            scram(&[&[choice][..], b"r=@x,s=MDEy,i=4096\0v=MDEy\0\0"].concat());
            socks5(&[&[choice][..], &[5, 2, 1, 0, 5, 0, 0, 1, 1, 2, 3, 4, 5, 6, 7]].concat());
        }
        for few in [&[][..], &[0], &[0; 5]] {
            hello_reply(few);
            scram(few);
            socks5(few);
        }
    }
}
