//! No text of the library holds a piece of a secret, whichever way the secret came in, however it was damaged, and whatever
//! the server repeats of it.

mod secret;
mod seen;

use std::env;
use std::fs;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use bson::rawdoc;
use cenote_core::client::Selector;
use cenote_core::connect::{AccessToken, SaslConversation, SaslMechanism};
use cenote_core::error::BoxError;
use cenote_core::uri::{ConnectionString, Credential};
use cenote_endpoint::{
    AccessToken as Accepted, AwsKey, Endpoint, ListenOptions, ScramSettings, Settings, User,
};
use cenote_shell::client::ClientBuilder;
use cenote_test_runtimes::alone_with;
use tempfile::tempdir;

use self::secret::{Pieces, Random, base64};
use self::seen::{see, see_all, see_debug, see_error};
use crate::shells::{ClientSetup, Recordings, Shell, Subscribers};
use crate::world::fail_point;

/// The number of a run, which the next run repeats that has it in its environment.
const SEED: &str = "CENOTE_SECRETS_SEED";

type Damage = fn(&[u8]) -> Vec<u8>;

/// What becomes of a secret before it comes in.
const DAMAGE: [Damage; 12] = [
    // Accepted, so that the server repeats it in a later error; then refused.
    <[u8]>::to_vec,
    <[u8]>::to_vec,
    |it| [it, b"\r\n"].concat(),
    |it| [b"\xEF\xBB\xBF \"", it, b"\""].concat(),
    |it| it[..it.len().min(120) - 10].to_vec(),
    |it| it.repeat(300),
    |it| split_by(it, b"\0"),
    |it| split_by(it, b"%/"),
    |it| split_by(it, b"@:?&=,"),
    |it| split_by(it, b"\xFF\x80"),
    |it| split_by(it, "\u{7}\u{202e}é\u{2028}".as_bytes()),
    // A file that was put into a variable; a text remains as it is.
    |it| String::from_utf8_lossy(it).replace('\n', "\\n").into_bytes(),
];

fn split_by(it: &[u8], separator: &[u8]) -> Vec<u8> {
    // In the middle of a password, and of a key.
    let (first, second) = it.split_at(it.len().min(140) / 2);
    [first, separator, second].concat()
}

/// How a server repeats what it got.
const ECHOES: [fn(&[u8]) -> String; 6] = [
    |it| format!("no: {}", String::from_utf8_lossy(it)),
    |it| format!("no: {}", base64(it)),
    |it| format!("no: {}", base64(&[b"\0app\0", it].concat())),
    |it| it.iter().map(|byte| format!("{byte:02x}")).collect(),
    |it| it.iter().map(|byte| format!("{byte:02X}")).collect(),
    |it| format!("{it:?}"),
];

/// Where secrets come in: what a client is built with.
struct Place<'a> {
    address: &'a str,
    /// The port of a proxy that refuses all passwords.
    proxy: u16,
    folder: &'a Path,
}

/// A connection string, and what does not stand in it.
type Entered = (String, ClientSetup<'static>);
type Enter = fn(&Place<'_>, &[u8]) -> Entered;

impl Place<'_> {
    fn uri(&self, userinfo: &str, options: &str) -> String {
        // Those that find no server must wait for none.
        let limit = if options.contains("proxy") || options.contains("tls") { 50 } else { 30_000 };
        let address = self.address;
        format!("mongodb://{userinfo}{address}/?{options}&serverSelectionTimeoutMS={limit}")
    }

    fn user(&self, mechanism: &str, password: &[u8]) -> Entered {
        let userinfo = format!("app:{}@", escaped(password));
        self.options(&userinfo, &format!("authMechanism={mechanism}"))
    }

    fn options(&self, userinfo: &str, options: &str) -> Entered {
        (self.uri(userinfo, options), ClientSetup::default())
    }

    fn file(&self, option: &str, bytes: &[u8]) -> Entered {
        let file = self.folder.join(option);
        fs::write(&file, bytes).expect("a file");
        let file = escaped(file.to_str().expect("UTF-8").as_bytes());
        // Without the authorities of the system, which take long to read.
        let insecure = if option == "tlsCAFile" { "tls=true" } else { "tlsInsecure=true" };
        self.options("", &format!("{insecure}&{option}={file}"))
    }

    fn aws(&self, access: &'static str, secret: String, token: Option<String>) -> Entered {
        let keys = Credential::of_aws_keys(access, secret.into(), token.map(Into::into));
        let aws_keys = Some(Box::new(move || Ok(keys.clone())) as Box<_>);
        let setup = ClientSetup { aws_keys, ..ClientSetup::default() };
        (self.uri("", "authMechanism=MONGODB-AWS"), setup)
    }
}

/// In a connection string.
fn escaped(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("%{byte:02X}")).collect()
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

const OIDC: &str = "authMechanism=MONGODB-OIDC&authMechanismProperties=ENVIRONMENT";
const AWS: &str = "authMechanism=MONGODB-AWS";

/// Each kind of secret with its way in.
const WAYS: [(&str, Enter); 22] = [
    ("the password of SCRAM-SHA-256", |at, it| at.user("SCRAM-SHA-256", it)),
    ("the password of SCRAM-SHA-1", |at, it| at.user("SCRAM-SHA-1", it)),
    ("the password of PLAIN", |at, it| at.user("PLAIN", it)),
    ("a password that is not escaped", |at, it| at.options(&format!("app:{}@", lossy(it)), "w=1")),
    ("the password of a proxy", |at, it| {
        let proxy = format!("proxyHost=127.0.0.1&proxyPort={}&proxyUsername=app", at.proxy);
        at.options("", &format!("{proxy}&proxyPassword={}", escaped(it)))
    }),
    ("the value of an option whose name is wrong", |at, it| {
        at.options("", &format!("proxyPasswort={}", escaped(it)))
    }),
    ("the passphrase of a key", |at, it| {
        let (uri, setup) = at.file("tlsCertificateKeyFile", b"");
        (format!("{uri}&tlsCertificateKeyFilePassword={}", escaped(it)), setup)
    }),
    ("a key in place of its file", |at, it| {
        at.options("", &format!("tlsInsecure=true&tlsCertificateKeyFile={}", escaped(it)))
    }),
    ("a key in its file", |at, it| at.file("tlsCertificateKeyFile", it)),
    ("an encrypted key", |at, it| {
        let encrypted = lossy(it).replace("PRIVATE KEY", "ENCRYPTED PRIVATE KEY");
        at.file("tlsCertificateKeyFile", encrypted.as_bytes())
    }),
    ("a key among authorities", |at, it| at.file("tlsCAFile", it)),
    ("a key of AWS in the connection string", |at, it| {
        at.options(&format!("AKIA:{}@", escaped(it)), AWS)
    }),
    ("a session token in the connection string", |at, it| {
        let properties = format!("authMechanismProperties=AWS_SESSION_TOKEN:{}", escaped(it));
        at.options("AKIA:known@", &format!("{AWS}&{properties}"))
    }),
    ("the key of AWS of a callback", |at, it| at.aws("AKIA", lossy(it), None)),
    ("the session token of a callback", |at, it| {
        at.aws("AKIB", "known".to_owned(), Some(lossy(it)))
    }),
    ("the access token of a callback", |at, it| {
        let token = AccessToken::new(lossy(it));
        let tokens = Some(Box::new(move |_: &_| Ok(token.clone())) as Box<_>);
        let setup = ClientSetup { tokens, ..ClientSetup::default() };
        (at.uri("", "authMechanism=MONGODB-OIDC"), setup)
    }),
    ("the access token of a file", |at, it| {
        fs::write(env::var_os("OIDC_TOKEN_FILE").expect("a path"), it).expect("a file");
        at.options("", &format!("{OIDC}:test"))
    }),
    ("an environment", |at, it| at.options("", &format!("{OIDC}:{}", escaped(it)))),
    ("a resource", |at, it| at.options("", &format!("{OIDC}:k8s,TOKEN_RESOURCE:{}", escaped(it)))),
    ("the payload of an own mechanism", |at, it| {
        let mechanism = Some(Arc::new(Own(it.to_vec())) as Arc<_>);
        (at.uri("", "w=1"), ClientSetup { mechanism, ..ClientSetup::default() })
    }),
    // Of the environment, and damaged there.
    ("an access token in place of its file", |at, _| at.options("", &format!("{OIDC}:k8s"))),
    ("the key of AWS of the environment", |at, _| at.options("", AWS)),
];

/// Those that stand in a file.
const KEYS: [&str; 4] = [
    "a key in place of its file",
    "a key in its file",
    "an encrypted key",
    "a key among authorities",
];

/// Sends the user and the password, as PLAIN does.
struct Own(Vec<u8>);

impl SaslMechanism for Own {
    fn name(&self) -> &'static str {
        "PLAIN"
    }

    fn start(&self) -> Result<Box<dyn SaslConversation>, BoxError> {
        Ok(Box::new(Self(self.0.clone())))
    }
}

impl SaslConversation for Own {
    fn first(&mut self) -> Result<Vec<u8>, BoxError> {
        Ok([b"\0app\0", &*self.0].concat())
    }

    fn respond(&mut self, _: &[u8]) -> Result<Vec<u8>, BoxError> {
        Err("it has one message".into())
    }
}

/// The port of a SOCKS5 proxy that refuses every password.
fn proxy() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("a port").port();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // Its ends are the client's to notice.
            let mut greeting = [0; 4];
            drop(
                (&stream).read_exact(&mut greeting).and_then(|()| (&stream).write_all(b"\x05\x02")),
            );
            drop((&stream).read(&mut [0; 1024]).and_then(|_| (&stream).write_all(b"\x01\x01")));
        }
    });
    port
}

/// An endpoint that knows the secret.
fn endpoint(secret: &str, tls: bool) -> Endpoint {
    let users = vec![User::new("app", secret), User::plain("app", secret)];
    let with_token = AwsKey::new("AKIB", "known").with_session_token(secret);
    let aws_keys = vec![AwsKey::new("AKIA", secret), with_token];
    let access_tokens = vec![Accepted::new(secret, "robot")];
    let settings = Settings::default();
    let scram = ScramSettings { sha1_iterations: 4096, sha256_iterations: 4096, ..settings.scram };
    let settings = Settings { auth: true, users, aws_keys, access_tokens, scram, ..settings };
    let listen = if tls { ListenOptions::with_tls() } else { ListenOptions::default() };
    Endpoint::start(settings, listen).expect("a port")
}

/// Builds and uses a client, and sees what there is to be seen.
fn visit(shell: Shell, (uri, setup): Entered, folder: &Path, secret: &str) {
    let parsed = ConnectionString::parse(&uri);
    see_debug(&parsed);
    match &parsed {
        Ok(parsed) => {
            parsed.warnings().iter().for_each(|warning| see(warning.to_string()));
            see_debug(&cenote_mio::MongoConnector::new(parsed));
        }
        Err(error) => see_error(error),
    }
    see_debug(&ClientBuilder::<cenote_mio::Client>::from_uri(&uri));
    let [traces, socket] = ["traces", "socket"].map(|name| folder.join(name));
    fs::create_dir(&traces).expect("a folder");
    let recordings = Recordings {
        into: Some(traces.clone()),
        dumps: Some(traces.clone()),
        flight_recorder: Some(1 << 16),
        ..Recordings::default()
    };
    let subscribers = Subscribers {
        pools: Some(Box::new(|event, _| see_debug(event))),
        heartbeats: Some(Box::new(|event| see_debug(event))),
        topology: vec![Box::new(|event| see_debug(event))],
        ..Subscribers::default()
    };
    let setup = ClientSetup { recordings, subscribers, inspect: Some(&socket), ..setup };
    let client = match shell.build_client(&uri, setup) {
        Ok(client) => client,
        Err(error) => return see_error(&error),
    };
    match client.check_out(&Selector::Any) {
        Ok(mut connection) => {
            see_debug(&connection);
            let outcome = connection.command("zoo", &rawdoc! { "count": "birds" });
            outcome.map_or_else(|error| see_error(&error), drop);
        }
        Err(error) => see_error(&error),
    }
    let replaced = client.replace_credential(Credential::of_user("app", secret, "admin"));
    replaced.map_or_else(|error| see_error(&error), drop);
    see_debug(&client.topology());
    for server in client.servers() {
        see(server.to_string());
        see_debug(&server);
        if let Some(pool) = client.pool(&server.address) {
            see_debug(&pool.snapshot());
        }
    }
    let stream = UnixStream::connect(&socket).expect("it listens");
    (&stream).write_all(b"pools\n").expect("it listens");
    BufReader::new(stream).lines().take(2).for_each(|line| see(line.expect("a line")));
    client.dump_traces(&traces).expect("dumps");
    client.close();
    client.end_recording().expect("whole traces");
    for file in fs::read_dir(&traces).expect("a folder") {
        see(fs::read(file.expect("a file").path()).expect("a file"));
    }
}

// OI-13
#[test]
fn no_text_shows_a_piece_of_a_secret() {
    let random_seed = || RandomState::new().hash_one(SEED) >> 1;
    let seed = env::var(SEED).map_or_else(|_| random_seed(), |seed| seed.parse().expect("a seed"));
    println!("{SEED}={seed}");
    let folder = tempdir().expect("a folder");
    let mut random = Random(seed);
    let secrets: Vec<_> = WAYS.iter().map(|_| random.secret()).collect();
    // Without zeros, of which variables have none.
    let mut of_environment = |index: usize| {
        let damaged = random.pick(&DAMAGE[..6])(secrets[index].0.as_bytes());
        String::from_utf8_lossy(&damaged).into_owned()
    };
    let (token, key) = (of_environment(WAYS.len() - 2), of_environment(WAYS.len() - 1));
    let file = folder.path().join("token").display().to_string();
    let variables = [
        (SEED, &*seed.to_string()),
        ("OIDC_TOKEN_FILE", &*file),
        ("AZURE_FEDERATED_TOKEN_FILE", &*token),
        ("AWS_ACCESS_KEY_ID", "AKIA"),
        ("AWS_SECRET_ACCESS_KEY", &*key),
    ];
    alone_with(&variables, || {
        see_all();
        let all = WAYS.iter().zip(&secrets);
        let pieces = Pieces::of(all.clone().map(|((what, _), secret)| (*what, secret)));
        let (proxy, mut hidden) = (proxy(), 0);
        for ((what, enter), secret) in all {
            let is_file = KEYS.contains(what);
            let whole = if is_file { secret.pem() } else { secret.0.clone() };
            let endpoint = endpoint(&secret.0, is_file);
            let address = &endpoint.address().to_string();
            for (number, damage) in DAMAGE.iter().enumerate() {
                let damaged = &*damage(whole.as_bytes());
                // What an own mechanism has sent is not kept for later.
                let is_later = number == 0 && !what.contains("own");
                let [first, second] =
                    if is_later { ["count", "find"] } else { ["saslStart", "saslContinue"] };
                let echo = &*random.pick(&ECHOES)(damaged);
                let errors = rawdoc! {
                    "failCommands": [first, second],
                    "errorCode": 18,
                    "errmsg": echo,
                    "errorLabels": [echo],
                };
                fail_point(&endpoint, errors, i32::MAX);
                let one = [random.pick(&Shell::ALL)];
                thread::scope(|scope| {
                    for shell in if number < 2 { &Shell::ALL[..] } else { &one } {
                        scope.spawn(move || {
                            let folder = tempdir().expect("a folder");
                            let place = Place { address, proxy, folder: folder.path() };
                            visit(*shell, enter(&place, damaged), folder.path(), &lossy(damaged));
                        });
                    }
                });
                let seen = seen::take();
                assert_eq!(pieces.find_in(&seen), None, "{what}, damage {number}, {one:?}");
                hidden += lossy(&seen).matches("is not shown").count();
            }
        }
        assert!(hidden > 100, "servers repeat secrets: {hidden}");
    });
}
