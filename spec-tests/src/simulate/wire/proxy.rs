//! A SOCKS5 proxy as a machine: what is at the other end of a connection that goes through one.

const VERSION: u8 = 5;
const NO_LOGIN: u8 = 0;
const LOGIN: u8 = 2;

/// The proxy's end of one connection.
#[derive(Debug, Default)]
pub(super) struct Proxy {
    heard: Vec<u8>,
    /// Messages that were answered.
    answered: u8,
}

/// What a proxy does with what it heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reaction {
    /// There is more to come.
    Wait,
    Say(&'static [u8]),
    /// It connects to the server, and says how that went.
    Connect,
    /// It says this and hangs up.
    Refuse(&'static [u8]),
}

/// The server was reached: with an address that nobody needs.
pub(super) const CONNECTED: &[u8] = &[VERSION, 0, 0, 1, 0, 0, 0, 0, 0, 0];
/// The server was not.
pub(super) const REFUSED: &[u8] = &[VERSION, 5, 0, 1, 0, 0, 0, 0, 0, 0];

impl Proxy {
    /// Clients send nothing before the last answer has come, so that all that is heard is one message.
    pub(super) fn hear(&mut self, bytes: &[u8], login: Option<(&str, &str)>) -> Reaction {
        self.heard.extend_from_slice(bytes);
        let Some(length) = self.length(login.is_some()) else { return Reaction::Wait };
        if self.heard.len() < length {
            return Reaction::Wait;
        }
        let message = std::mem::take(&mut self.heard);
        self.answered += 1;
        match (self.answered, login) {
            (1, None) if message.contains(&NO_LOGIN) => Reaction::Say(&[VERSION, NO_LOGIN]),
            (1, Some(_)) if message.contains(&LOGIN) => Reaction::Say(&[VERSION, LOGIN]),
            (1, _) => Reaction::Refuse(&[VERSION, 0xff]),
            (2, Some((user, password))) => {
                let is_known = message == said(user, password);
                if is_known { Reaction::Say(&[1, 0]) } else { Reaction::Refuse(&[1, 1]) }
            }
            _ => Reaction::Connect,
        }
    }

    /// Of the message that is being heard, once that can be known.
    fn length(&self, has_login: bool) -> Option<usize> {
        let byte = |at: usize| self.heard.get(at).map(|&byte| usize::from(byte));
        match self.answered {
            0 => Some(2 + byte(1)?),
            1 if has_login => {
                let user = byte(1)?;
                Some(3 + user + byte(2 + user)?)
            }
            // A name, because the server has one.
            _ => Some(7 + byte(4)?),
        }
    }
}

fn said(user: &str, password: &str) -> Vec<u8> {
    let length = |text: &str| u8::try_from(text.len()).unwrap_or(u8::MAX);
    let mut said = vec![1, length(user)];
    said.extend_from_slice(user.as_bytes());
    said.push(length(password));
    said.extend_from_slice(password.as_bytes());
    said
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

    /// The whole way, a byte at a time.
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
                        last = proxy.hear(&[*byte], login);
                    }
                    answer = match last {
                        Reaction::Wait => panic!("a whole message"),
                        Reaction::Say(answer) | Reaction::Refuse(answer) => answer,
                        Reaction::Connect => verdict,
                    };
                }
                ProxyStep::Receive => assert_eq!(socks5.received(answer), answer.len()),
                ProxyStep::Connected => return Ok(()),
            }
        }
    }

    #[test]
    fn clients_get_through_and_are_refused() {
        let (nobody, somebody) =
            (options(""), options("&proxyUsername=me&proxyPassword=open%20sesame"));
        let login = Some(("me", "open sesame"));
        assert_eq!(go(&nobody, None, CONNECTED), Ok(()));
        assert_eq!(go(&somebody, None, CONNECTED), Ok(()));
        assert_eq!(go(&somebody, login, CONNECTED), Ok(()));
        for (client, login, verdict) in [
            (&nobody, login, CONNECTED),
            (&somebody, Some(("me", "wrong")), CONNECTED),
            (&somebody, login, REFUSED),
        ] {
            let refusal = go(client, login, verdict).unwrap_err();
            assert!(refusal.starts_with("SOCKS5 proxy: "), "{refusal}");
        }
    }
}
