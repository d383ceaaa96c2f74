//! What one can ask of a client as a whole.

use core::fmt::{self, Write as _};

use super::ClientState;
use crate::pool::mix;

/// How a client stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientSnapshot {
    /// How many servers it has.
    pub servers: usize,
    /// How many of them are of a known type.
    pub known: usize,
    /// How many callers wait for a server.
    pub waiting: usize,
    /// Whether it is closed.
    pub is_closed: bool,
}

impl<W> ClientState<W> {
    /// Counts. Takes time in proportion to the number of servers.
    #[must_use]
    pub fn snapshot(&self) -> ClientSnapshot {
        let known = self.topology.description().servers().filter(|(_, server)| server.is_known());
        ClientSnapshot {
            servers: self.members.len(),
            known: known.count(),
            waiting: self.requests.len(),
            is_closed: self.is_closed,
        }
    }

    /// A number that is the same for two clients in the same state, whatever their callers are: to compare one that is fed
    /// recorded inputs with the one that recorded them. It differs between versions. Takes time in proportion to the number
    /// of servers and of callers.
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        let mut digest = Digest(0);
        let whole = (self.now, self.is_closed, self.is_asking, &self.polling, &*self.topology);
        digest.add(&whole);
        self.members.iter().for_each(|(id, member)| digest.add(&(id, member)));
        digest.add(&self.requests.last);
        self.requests.waiting().for_each(|request| digest.add(&request));
        digest.0
    }
}

/// Of the texts that `Debug` gives, which name every field.
struct Digest(u64);

impl Digest {
    fn add(&mut self, part: &dyn fmt::Debug) {
        let _ = write!(self, "{part:?};");
    }
}

impl fmt::Write for Digest {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 = text.bytes().fold(self.0, |digest, byte| mix(digest ^ u64::from(byte)));
        Ok(())
    }
}
