//! A SOCKS5 proxy as a state machine: the peer of a connection through a proxy.

const VERSION: u8 = 5;
const NO_LOGIN: u8 = 0;
const LOGIN: u8 = 2;

/// The proxy's end of one connection.
#[derive(Debug, Default)]
pub(super) struct Proxy {
    received: Vec<u8>,
    /// The number of messages that were answered.
    answered: u8,
}

/// What the proxy does with received bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reaction {
    /// The message is incomplete.
    Wait,
    /// Replies.
    Reply(&'static [u8]),
    /// Connects to the server, and replies with the result.
    Connect,
    /// Replies and closes the connection.
    Refuse(&'static [u8]),
}

/// The reply if the server was reached, with an address that clients ignore.
pub(super) const CONNECTED: &[u8] = &[VERSION, 0, 0, 1, 0, 0, 0, 0, 0, 0];
/// The reply if the server was not reached.
pub(super) const REFUSED: &[u8] = &[VERSION, 5, 0, 1, 0, 0, 0, 0, 0, 0];

impl Proxy {
    /// Processes bytes. Clients send nothing before the last answer, so all bytes belong to one message.
    pub(super) fn receive(&mut self, bytes: &[u8], login: Option<(&str, &str)>) -> Reaction {
        self.received.extend_from_slice(bytes);
        let Some(length) = self.length(login.is_some()) else { return Reaction::Wait };
        if self.received.len() < length {
            return Reaction::Wait;
        }
        let message = std::mem::take(&mut self.received);
        self.answered += 1;
        match (self.answered, login) {
            (1, None) if message.contains(&NO_LOGIN) => Reaction::Reply(&[VERSION, NO_LOGIN]),
            (1, Some(_)) if message.contains(&LOGIN) => Reaction::Reply(&[VERSION, LOGIN]),
            (1, _) => Reaction::Refuse(&[VERSION, 0xff]),
            (2, Some((user, password))) => {
                let is_known = message == login_message(user, password);
                if is_known { Reaction::Reply(&[1, 0]) } else { Reaction::Refuse(&[1, 1]) }
            }
            _ => Reaction::Connect,
        }
    }

    /// The length of the present message, once it is known.
    fn length(&self, has_login: bool) -> Option<usize> {
        let byte = |at: usize| self.received.get(at).map(|&byte| usize::from(byte));
        match self.answered {
            0 => Some(2 + byte(1)?),
            1 if has_login => {
                let user = byte(1)?;
                Some(3 + user + byte(2 + user)?)
            }
            // The server's address is a name.
            _ => Some(7 + byte(4)?),
        }
    }
}

fn login_message(user: &str, password: &str) -> Vec<u8> {
    let length = |text: &str| u8::try_from(text.len()).unwrap_or(u8::MAX);
    let mut message = vec![1, length(user)];
    message.extend_from_slice(user.as_bytes());
    message.push(length(password));
    message.extend_from_slice(password.as_bytes());
    message
}

#[cfg(test)]
mod tests {
    use cenote_core::connect::{ProxyStep, Socks5};
    use cenote_core::uri::{ConnectionString, ProxyOptions};

    use super::{CONNECTED, Proxy, REFUSED, Reaction};

    fn options(login: &str) -> ProxyOptions {
        let uri = format!("mongodb://db/?proxyHost=proxy{login}");
        ConnectionString::parse(&uri).unwrap().proxy.unwrap()
    }

    /// The whole handshake, one byte at a time.
    fn go(
        client: &ProxyOptions,
        login: Option<(&str, &str)>,
        verdict: &[u8],
    ) -> Result<(), String> {
        let address = "db.example.com:27017".parse().unwrap();
        let mut socks5 = Socks5::new(&address, client.credential.as_ref()).unwrap();
        let mut proxy = Proxy::default();
        let mut answer: &[u8] = &[];
        loop {
            match socks5.next_step().map_err(|error| error.to_string())? {
                ProxyStep::Send(bytes) => {
                    let mut last = Reaction::Wait;
                    for byte in bytes.as_slice() {
                        assert_eq!(last, Reaction::Wait, "one message at a time");
                        last = proxy.receive(&[*byte], login);
                    }
                    answer = match last {
                        Reaction::Wait => panic!("a whole message"),
                        Reaction::Reply(answer) | Reaction::Refuse(answer) => answer,
                        Reaction::Connect => verdict,
                    };
                }
                ProxyStep::Receive => assert_eq!(socks5.received(answer), answer.len()),
                ProxyStep::Connected => return Ok(()),
            }
        }
    }

    #[test]
    fn clients_are_accepted_and_refused() {
        let (anonymous, with_login) =
            (options(""), options("&proxyUsername=me&proxyPassword=open%20sesame"));
        let login = Some(("me", "open sesame"));
        assert_eq!(go(&anonymous, None, CONNECTED), Ok(()));
        assert_eq!(go(&with_login, None, CONNECTED), Ok(()));
        assert_eq!(go(&with_login, login, CONNECTED), Ok(()));
        for (client, login, verdict) in [
            (&anonymous, login, CONNECTED),
            (&with_login, Some(("me", "wrong")), CONNECTED),
            (&with_login, login, REFUSED),
        ] {
            let refusal = go(client, login, verdict).unwrap_err();
            assert!(refusal.starts_with("SOCKS5 proxy: "), "{refusal}");
        }
    }
}
