//! The commands of a transcript.

use std::str::FromStr;
use std::time::Duration;

use cenote_core::pool::{PoolOptions, Purpose, ServiceId};

use super::options;
use super::words::{Words, duration, number, purpose, service, text};

/// A command. Durations are written `50ms`, connections by their number, services `S1`.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Command {
    /// `pool max=2 min=1 connecting=2 idle=10ms wait=50ms …`: a new pool; time starts at 0.
    Pool(PoolOptions),
    /// `out a b`, with `deadline=+50ms`, `purpose=cursor`, `id=7`: a and b check out.
    Out {
        /// The callers, in this order.
        names: Vec<String>,
        /// The time until the caller's deadline.
        deadline: Option<Duration>,
        /// The purpose.
        purpose: Purpose,
        /// The waiter id, if it is not the next one.
        id: Option<u64>,
    },
    /// `cancel a`: a cancels.
    Cancel(String),
    /// `in 1 2`, with `error="reset"`, or `pending=7` before the reply to request 7: connections are
    /// checked in.
    In {
        /// The connections.
        ids: Vec<u64>,
        /// Their error, if they must not be used again.
        error: Option<String>,
        /// The request whose reply is still to come.
        pending: Option<i32>,
    },
    /// `drained 1`: the late reply was read.
    Drained(u64),
    /// `drain failed 1`, with `error="reset"`: the late reply could not be read.
    DrainFailed(u64, String),
    /// `drain read 1`: bytes of the late reply were read.
    DrainRead(u64),
    /// `retire`: credentials changed.
    Retire,
    /// `release`: idle connections are given back.
    Release,
    /// `purpose 1 transaction`: a connection in use changes its purpose.
    Repurpose(u64, Purpose),
    /// `handshaken 1`, with `service=S1`: the server replied to hello; with `clears=0`, when services
    /// had been cleared that often.
    Handshaken(u64, Option<ServiceId>, Option<u64>),
    /// `established 1 2`: connections are established.
    Established(Vec<u64>),
    /// `failed 1 "connection refused"`, with `overload`: a connection could not be established.
    Failed(u64, String, bool),
    /// `peer closed 1`, with `error="eof"`: the peer closed an idle connection.
    PeerClosed(u64, String),
    /// `ready`: the pool is marked ready.
    Ready,
    /// `clear "cause"`, with `interrupt`, `service=S1`.
    Clear {
        /// The cause.
        cause: String,
        /// Whether connections in use are interrupted.
        interrupt: bool,
        /// The service whose connections are cleared.
        service: Option<ServiceId>,
    },
    /// `close`: closes the pool.
    Close,
    /// `options max=5 …`: sets other options; omitted ones return to their defaults.
    Options(PoolOptions),
    /// `fork`: from now on, this is the child process.
    Fork,
    /// `timer`: fires the timer now, whether it is due or not.
    Timer,
    /// `+5ms`: time passes without firing the timer.
    Pass(Duration),
    /// `-5ms`: the clock runs backwards.
    Back(Duration),
    /// `advance 50ms`: time passes, and the timer fires exactly at each deadline.
    Advance(Duration),
    /// A question about the pool; no input.
    Ask(Question),
}

/// A question about the state of the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Question {
    /// `state`: the snapshot's line.
    State,
    /// `connections`: one per line.
    Connections,
    /// `waiters`: one per line.
    Waiters,
    /// `services`: one per line.
    Services,
    /// `deadline`: the next deadline and its reason.
    Deadline,
}

impl FromStr for Command {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
        let mut words = Words::new(rest)?;
        let command = match verb {
            "pool" => Self::Pool(options::read(&mut words)?),
            "options" => Self::Options(options::read(&mut words)?),
            "out" => out(&mut words)?,
            "in" => Self::In {
                ids: connections(&mut words)?,
                error: words.key("error", text)?,
                pending: words.key("pending", number)?,
            },
            "drained" => Self::Drained(connection(&mut words)?),
            "drain" if words.flag("failed") => {
                let id = connection(&mut words)?;
                let error = words.key("error", text)?;
                Self::DrainFailed(id, error.unwrap_or_else(|| "reset".to_owned()))
            }
            "drain" if words.flag("read") => Self::DrainRead(connection(&mut words)?),
            "clear" => clear(&mut words)?,
            "cancel" => Self::Cancel(words.next("who")?),
            "purpose" => Self::Repurpose(connection(&mut words)?, purpose(&words.next("what")?)?),
            "handshaken" => {
                let (id, service) = (connection(&mut words)?, words.key("service", service)?);
                Self::Handshaken(id, service, words.key("clears", number)?)
            }
            "established" => Self::Established(connections(&mut words)?),
            "failed" => {
                let overloaded = words.flag("overload");
                Self::Failed(connection(&mut words)?, words.next("the cause")?, overloaded)
            }
            "peer" if words.flag("closed") => peer_closed(&mut words)?,
            "advance" => Self::Advance(duration(&words.next("how far")?)?),
            _ => alone(verb)?,
        };
        words.end()?;
        Ok(command)
    }
}

/// Commands that consist of one word.
fn alone(verb: &str) -> Result<Command, String> {
    match verb {
        "ready" => Ok(Command::Ready),
        "close" => Ok(Command::Close),
        "timer" => Ok(Command::Timer),
        "retire" => Ok(Command::Retire),
        "release" => Ok(Command::Release),
        "fork" => Ok(Command::Fork),
        "state" => Ok(Command::Ask(Question::State)),
        "connections" => Ok(Command::Ask(Question::Connections)),
        "waiters" => Ok(Command::Ask(Question::Waiters)),
        "services" => Ok(Command::Ask(Question::Services)),
        "deadline" => Ok(Command::Ask(Question::Deadline)),
        _ => time(verb),
    }
}

fn time(verb: &str) -> Result<Command, String> {
    if let Some(forwards) = verb.strip_prefix('+') {
        return duration(forwards).map(Command::Pass);
    }
    if let Some(backwards) = verb.strip_prefix('-') {
        return duration(backwards).map(Command::Back);
    }
    Err(format!("unknown command: {verb}"))
}

fn out(words: &mut Words) -> Result<Command, String> {
    Ok(Command::Out {
        names: words.rest("who")?,
        deadline: words.key("deadline", from_now)?,
        purpose: words.key("purpose", purpose)?.unwrap_or_default(),
        id: words.key("id", number)?,
    })
}

fn from_now(text: &str) -> Result<Duration, String> {
    let distance = text.strip_prefix('+').ok_or_else(|| format!("not as +50ms: {text}"))?;
    duration(distance)
}

fn clear(words: &mut Words) -> Result<Command, String> {
    Ok(Command::Clear {
        cause: words.next("the cause")?,
        interrupt: words.flag("interrupt"),
        service: words.key("service", service)?,
    })
}

fn peer_closed(words: &mut Words) -> Result<Command, String> {
    let id = connection(words)?;
    let cause = words.key("error", text)?.unwrap_or_else(|| "closed by peer".to_owned());
    Ok(Command::PeerClosed(id, cause))
}

fn connection(words: &mut Words) -> Result<u64, String> {
    words.number("the connection")
}

fn connections(words: &mut Words) -> Result<Vec<u64>, String> {
    words.numbers("the connection")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_commands_are_refused() {
        let refused = |line: &str| line.parse::<Command>().unwrap_err();
        assert_eq!(refused("opne 1"), "unknown command: opne");
        assert_eq!(refused("in"), "the connection is missing");
        assert_eq!(refused("ready now"), "not understood: now");
        assert_eq!(refused("pool maximum=3"), "not understood: maximum=");
    }
}
