//! Faults beyond those of fail points, and when they happen.

use std::ops::RangeInclusive;
use std::time::Duration;

/// What goes wrong.
///
/// A fault that concerns a reply happens instead of it: the command was run. A fail point with
/// `closeConnection` is what breaks a connection before its command was run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The server does not listen until the fault is cleared. Open connections stay. Affects the
    /// whole server at once, whatever else the script says.
    Refuse,
    /// The connection is closed with FIN.
    Close,
    /// The connection is reset.
    Reset,
    /// The server shuts down its sending direction, and goes on reading.
    HalfClose,
    /// The server sends nothing more, and goes on reading.
    Stall,
    /// The first `bytes` of the reply, then the end of the connection.
    Cut {
        /// Of the reply; all of it if that is shorter.
        bytes: usize,
        /// What comes after them.
        then: Ending,
    },
    /// Bytes that are no message, instead of the reply.
    Garbage {
        /// How many; at most 1 MiB.
        bytes: usize,
    },
    /// The reply in small pieces, the first of them at once.
    Drip {
        /// Bytes of one piece; one at least.
        bytes: usize,
        /// Time between two pieces.
        every: Duration,
    },
    /// The reply with this `messageLength`: oversized, negative, too short.
    Length {
        /// As the header will say.
        value: i32,
    },
    /// The reply with this `opCode`.
    OpCode {
        /// As the header will say.
        value: i32,
    },
    /// The reply with a checksum, which is wrong.
    Checksum,
    /// The reply answers to this many messages later than the request.
    ResponseTo {
        /// What is added to the right `responseTo`.
        off_by: i32,
    },
    /// The reply as an OP_COMPRESSED with this compressor id; ids from 4 on are not assigned.
    CompressorId {
        /// As the message will say.
        value: u8,
    },
    /// A reply compressed with zlib that decompresses to many more bytes.
    Bomb {
        /// The size after decompression; at most 2^31 - 1024.
        bytes: u32,
        /// The `uncompressedSize` in the header; the true size if `None`.
        claimed: Option<i32>,
    },
    /// A reply with deeply nested documents.
    DeepBson {
        /// Levels below the reply itself; at most a million.
        levels: u32,
    },
    /// The reply twice: the second one is unsolicited.
    Twice,
    /// The reply is sent on the next connection with this fault, whose reply is sent on this one. Until
    /// there is one, nothing is sent; a reply that still waits when the fault is cleared is sent on its own
    /// connection.
    Crossed,
    /// The reply with texts in the fields that clients read from a hello and from an error (`setName`, `me`,
    /// `primary`, `hosts`, `errmsg`, `codeName` and others): escape sequences, new lines, invisible
    /// characters, 64 KiB.
    HostileTexts {
        /// Whether the reply also says `ok: 0`, with the code 8 (`UnknownError`).
        fails: bool,
    },
    /// SCRAM goes wrong from the next conversation of the connection on; the reply to the command
    /// that triggers it is as it should be, but for that.
    Scram(ScramFault),
}

/// How a conversation goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ScramFault {
    /// The server's proof is another one's.
    WrongSignature,
    /// The server says so many iterations, whatever the user has.
    Iterations(u32),
    /// The server's nonce is the first part of the client's.
    TruncatedNonce,
    /// The server's nonce does not begin with the client's.
    ForeignNonce,
    /// `done` never comes true. Also in conversations of PLAIN and MONGODB-OIDC.
    Endless,
    /// `done` comes true without the server's proof.
    NoSignature,
    /// The last message is an error of SCRAM itself: `e=other-error`.
    Error,
}

/// How a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ending {
    /// In good order: with TLS by `close_notify` and FIN.
    Close,
    /// By FIN alone: with TLS without `close_notify`.
    Fin,
    /// By a reset.
    Reset,
    /// Not at all: nothing more is said.
    Stall,
}

/// A fault, and when it happens. [`Script::new`] makes one that always does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// What goes wrong.
    pub fault: Fault,
    /// On which connections: 1 is the first that the server accepted.
    pub connections: RangeInclusive<u64>,
    /// Only on connections of this application, if it is named.
    pub app_name: Option<String>,
    /// At which moment.
    pub moment: Moment,
    /// How often in all; `None` for ever.
    pub times: Option<u64>,
}

/// The moment of a fault.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Moment {
    /// As soon as the connection is accepted. Faults of a reply wait for the first one. The
    /// application is not known yet: a script that names one never comes to this moment.
    Accept,
    /// When a command comes.
    Command {
        /// Only at the command of this name or alias, if it is named.
        name: Option<String>,
        /// How many such commands of the connection are spared first.
        skip: u64,
    },
}

/// Names a script that was set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FaultId(pub(super) u64);

impl Script {
    /// At every command of every connection.
    #[must_use]
    pub fn new(fault: Fault) -> Self {
        Self {
            fault,
            connections: 1..=u64::MAX,
            app_name: None,
            moment: Moment::Command { name: None, skip: 0 },
            times: None,
        }
    }

    /// Only on these connections: 1 is the first that the server accepted.
    #[must_use]
    pub fn on_connections(self, connections: RangeInclusive<u64>) -> Self {
        Self { connections, ..self }
    }

    /// Only on connections of this application.
    #[must_use]
    pub fn for_app(self, name: &str) -> Self {
        Self { app_name: Some(name.to_owned()), ..self }
    }

    /// As soon as the connection is accepted.
    #[must_use]
    pub fn at_accept(self) -> Self {
        Self { moment: Moment::Accept, ..self }
    }

    /// Only at this command, after `skip` of them on the same connection.
    #[must_use]
    pub fn at_command(self, name: &str, skip: u64) -> Self {
        Self { moment: Moment::Command { name: Some(name.to_owned()), skip }, ..self }
    }

    /// So often, and not more.
    #[must_use]
    pub fn times(self, times: u64) -> Self {
        Self { times: Some(times), ..self }
    }
}
