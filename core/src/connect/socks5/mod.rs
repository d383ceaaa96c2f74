mod message;

use core::fmt;

use zeroize::Zeroizing;

use self::message::{
    IPV4, IPV6, LOGIN, NAME, NO_LOGIN, NONE_ACCEPTABLE, SOCKS, USER_AND_PASSWORD, check_version,
    login, protocol, refusal, refused, request,
};
use crate::address::ServerAddress;
use crate::error::ConnectionError;
use crate::uri::ProxyCredential;

/// The way through a SOCKS5 proxy (RFC 1928, RFC 1929), without I/O.
///
/// The embedder connects to the proxy, takes the [next step](Self::next_step) until it is
/// [`ProxyStep::Connected`] or an error, and goes on with TLS or hello as if the proxy were the
/// server. When the connection to the proxy fails, or time runs out, the error is the embedder's to
/// make, at [`Stage::Proxy`](crate::error::Stage::Proxy). The machine never needs more than 262
/// bytes of memory for what it reads.
///
/// ```
/// use cenote_core::connect::{ProxyStep, Socks5};
///
/// let mut socks5 = Socks5::new(&"db.example.com".parse()?, None)?;
/// let ProxyStep::Send(greeting) = socks5.next_step()? else { panic!() };
/// assert_eq!(greeting.as_slice(), [5, 1, 0]);
/// assert!(matches!(socks5.next_step()?, ProxyStep::Receive));
///
/// assert_eq!(socks5.received(&[5, 0]), 2);
/// let ProxyStep::Send(request) = socks5.next_step()? else { panic!() };
/// assert_eq!(request.as_slice(), b"\x05\x01\x00\x03\x0edb.example.com\x69\x89");
///
/// // The proxy's answer, and with it the first byte from the server, which is not the proxy's.
/// assert_eq!(socks5.received(&[5, 0, 0, 1, 10, 0, 0, 1, 4, 56, 77]), 10);
/// assert!(matches!(socks5.next_step()?, ProxyStep::Connected));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Socks5 {
    /// User name and password, as they are sent.
    login: Option<Zeroizing<Vec<u8>>>,
    request: Zeroizing<Vec<u8>>,
    phase: Phase,
    /// The bytes to send before reading.
    outbox: Option<ProxyBytes>,
    /// As much as there is of the proxy's present message.
    inbox: Vec<u8>,
}

/// The next step.
#[derive(Debug)]
#[must_use]
pub enum ProxyStep {
    /// Send all of these bytes to the proxy.
    Send(ProxyBytes),
    /// Read from the proxy, and feed the bytes to [`Socks5::received`].
    Receive,
    /// The proxy has connected to the server: every other byte is the server's.
    // SX-05
    Connected,
}

/// Bytes for a proxy. They may hold a password, so that `Debug` does not show them and they are
/// overwritten when they are dropped.
pub struct ProxyBytes(Zeroizing<Vec<u8>>);

enum Phase {
    Greeting,
    Login,
    Request,
    Connected,
    Failed(ConnectionError),
}

impl Socks5 {
    /// A machine for one connection through a proxy. The server's name goes to the proxy as it is,
    /// to be resolved there.
    ///
    /// # Errors
    ///
    /// A configuration error at [`Stage::Proxy`](crate::error::Stage::Proxy) when the server is a
    /// UNIX socket, or its name, the user name or the password does not fit into the protocol: 1 to
    /// 255 bytes each.
    // SX-03
    pub fn new(
        server: &ServerAddress,
        credential: Option<&ProxyCredential>,
    ) -> Result<Self, ConnectionError> {
        let methods: &[u8] = match credential {
            None => &[SOCKS, 1, NO_LOGIN],
            Some(_) => &[SOCKS, 2, NO_LOGIN, USER_AND_PASSWORD],
        };
        let greeting = Zeroizing::new(methods.to_vec());
        Ok(Self {
            outbox: Some(ProxyBytes(greeting)),
            login: credential.map(login).transpose()?,
            request: request(server)?,
            phase: Phase::Greeting,
            inbox: Vec::new(),
        })
    }

    /// The next step.
    ///
    /// # Errors
    ///
    /// Why the connection has to be closed: a network error when the proxy refuses, a protocol
    /// error when it violates SOCKS5. Calling it again returns the same.
    pub fn next_step(&mut self) -> Result<ProxyStep, ConnectionError> {
        match (&self.phase, self.outbox.take()) {
            (Phase::Failed(error), _) => Err(error.clone()),
            (_, Some(bytes)) => Ok(ProxyStep::Send(bytes)),
            (Phase::Connected, None) => Ok(ProxyStep::Connected),
            (Phase::Greeting | Phase::Login | Phase::Request, None) => Ok(ProxyStep::Receive),
        }
    }

    /// Takes bytes from the proxy, in any pieces, and returns how many it consumed: all of them
    /// until the proxy's last message has been read, and none after that.
    pub fn received(&mut self, bytes: &[u8]) -> usize {
        for (at, byte) in bytes.iter().enumerate() {
            if matches!(self.phase, Phase::Connected) {
                return at;
            }
            if self.outbox.is_some() {
                self.fail(protocol("the proxy answers what it was not asked"));
            }
            if matches!(self.phase, Phase::Failed(_)) {
                break;
            }
            self.inbox.push(*byte);
            self.read();
        }
        bytes.len()
    }

    /// Looks at what there is, which is never more than one message: it is called after each byte.
    fn read(&mut self) {
        let outcome = match &self.phase {
            Phase::Greeting => self.read_method(),
            Phase::Login => self.read_login(),
            Phase::Request => self.read_reply(),
            Phase::Connected | Phase::Failed(_) => Ok(None),
        };
        match outcome {
            Ok(None) => {}
            Ok(Some(phase)) => {
                self.inbox.clear();
                self.outbox = match &phase {
                    Phase::Login => self.login.take().map(ProxyBytes),
                    Phase::Request => Some(ProxyBytes(core::mem::take(&mut self.request))),
                    Phase::Greeting | Phase::Connected | Phase::Failed(_) => None,
                };
                self.phase = phase;
            }
            Err(error) => self.fail(error),
        }
    }

    /// Which of the offered ways to log in the proxy chose.
    fn read_method(&self) -> Outcome {
        check_version(&self.inbox, SOCKS)?;
        match self.inbox.get(1) {
            None => Ok(None),
            Some(&NO_LOGIN) => Ok(Some(Phase::Request)),
            Some(&USER_AND_PASSWORD) if self.login.is_some() => Ok(Some(Phase::Login)),
            Some(&NONE_ACCEPTABLE) if self.login.is_some() => {
                Err(refusal("the proxy accepts neither no login nor user name and password"))
            }
            Some(&NONE_ACCEPTABLE) => Err(refusal("the proxy asks for a user name and password")),
            Some(other) => Err(protocol(&format!(
                "the proxy chose login method {other}, which was not offered"
            ))),
        }
    }

    fn read_login(&self) -> Outcome {
        check_version(&self.inbox, LOGIN)?;
        match self.inbox.get(1) {
            None => Ok(None),
            Some(0) => Ok(Some(Phase::Request)),
            Some(_) => Err(refusal("the proxy refuses the user name or password")),
        }
    }

    /// Whether the proxy reached the server. The address that it used on the way is skipped; after
    /// a refusal it is not waited for.
    fn read_reply(&self) -> Outcome {
        check_version(&self.inbox, SOCKS)?;
        if let Some(code) = self.inbox.get(1).filter(|code| **code != 0) {
            return Err(refusal(&refused(*code)));
        }
        let Some(kind) = self.inbox.get(3) else { return Ok(None) };
        let address = match (*kind, self.inbox.get(4)) {
            (IPV4, _) => 4,
            (IPV6, _) => 16,
            (NAME, Some(length)) => 1 + usize::from(*length),
            (NAME, None) => return Ok(None),
            (other, _) => {
                return Err(protocol(&format!("the proxy answers with address type {other}")));
            }
        };
        let is_whole = self.inbox.len() == 4 + address + 2;
        Ok(is_whole.then_some(Phase::Connected))
    }

    fn fail(&mut self, error: ConnectionError) {
        self.outbox = None;
        self.phase = Phase::Failed(error);
    }
}

/// The next phase; `None` while the message is not whole.
type Outcome = Result<Option<Phase>, ConnectionError>;

impl fmt::Debug for Socks5 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let phase = match &self.phase {
            Phase::Greeting => "greeting",
            Phase::Login => "login",
            Phase::Request => "request",
            Phase::Connected => "connected",
            Phase::Failed(_) => "failed",
        };
        f.debug_struct("Socks5").field("phase", &phase).finish_non_exhaustive()
    }
}

impl ProxyBytes {
    /// The bytes. The caller is responsible for where they go.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for ProxyBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProxyBytes(…)")
    }
}
