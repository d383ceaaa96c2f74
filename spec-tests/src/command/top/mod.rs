//! `cenote top SOCKET`: the pools of a running process, as they are now.

mod arguments;
mod live;
mod rates;
mod screen;
mod state;
mod table;
mod text;

use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::thread;

use serde_json::{Value, json};
use thiserror::Error;

use self::live::Live;
use self::rates::{Moment, Rates};
use super::output::has_seen_enough;

pub use self::arguments::Arguments;

/// Why there is nothing to see.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Trouble {
    /// No file.
    #[error("{}: there is no such socket: is the process running, and was its client built with .inspect(…)?", path.display())]
    Absent {
        /// As it was given.
        path: PathBuf,
    },
    /// Another file.
    #[error("{}: this is not a socket: give the path that the process passes to .inspect(…)", path.display())]
    NotASocket {
        /// As it was given.
        path: PathBuf,
    },
    /// Another user's.
    #[error("{}: permission denied: only the user of the process can inspect it", path.display())]
    Forbidden {
        /// As it was given.
        path: PathBuf,
    },
    /// A file that was left behind.
    #[error("{}: no process listens: the one that created this socket has ended", path.display())]
    Ended {
        /// As it was given.
        path: PathBuf,
    },
    /// A process that does not run, or a server of another protocol that waits for its client to speak.
    #[error("{}: no answer within 10 s: the process is stopped, or this is not a socket of cenote", path.display())]
    Silent {
        /// As it was given.
        path: PathBuf,
    },
    /// The process, or its client, ended meanwhile.
    #[error("{}: the process has closed the socket: its pools are closed, or it has ended", path.display())]
    Gone {
        /// As it was given.
        path: PathBuf,
    },
    /// Another protocol.
    #[error("{}: not a socket of cenote: it says {line:?}", path.display())]
    Foreign {
        /// As it was given.
        path: PathBuf,
        /// The beginning of what came.
        line: String,
    },
    /// Another version of the protocol.
    #[error(
        "{}: {program} speaks version {version} of the protocol, this command version {expected}: \
         use the cenote command of the same release",
        path.display()
    )]
    Version {
        /// As it was given.
        path: PathBuf,
        /// The program and its version.
        program: String,
        /// Of the protocol.
        version: u64,
        /// Of the protocol, here.
        expected: u64,
    },
    /// An answer without what it has to have.
    #[error("{}: an answer cannot be read: {source}", path.display())]
    Answer {
        /// As it was given.
        path: PathBuf,
        /// What is wrong.
        source: serde_json::Error,
    },
    /// The process answers that it cannot do that.
    #[error("{0}")]
    Refused(String),
    /// `--pool` names none.
    #[error("--pool {given}: the process has no such pool; it has {known}")]
    NoPool {
        /// As it was given.
        given: String,
        /// Numbers and addresses.
        known: String,
    },
    /// Nothing to draw on.
    #[error("standard output is not a terminal: use --once, or --json")]
    NoTerminal,
    /// The snapshot cannot be written.
    #[error("{}: {source}", path.display())]
    File {
        /// Where it was to be.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The socket does not work.
    #[error("{}: {source}", path.display())]
    Socket {
        /// As it was given.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The terminal, standard output.
    #[error(transparent)]
    System(#[from] io::Error),
}

/// Shows the pools until the user quits; with `--once` or `--json`, prints them.
///
/// # Errors
///
/// There is no such process, or it does not answer as expected.
pub fn run(arguments: &Arguments) -> Result<bool, Trouble> {
    let is_printed = arguments.once || arguments.json;
    let mut live = Live::connect(&arguments.socket)?;
    if !is_printed && !io::stdout().is_terminal() {
        return Err(Trouble::NoTerminal);
    }
    let chosen = arguments.pool.as_deref().map(|given| choose(&mut live, given)).transpose()?;
    if is_printed {
        print(&mut live, arguments, chosen)?;
    } else {
        screen::run(live, arguments, chosen)?;
    }
    Ok(true)
}

/// The number of the pool that `--pool` names, by its number or its address.
fn choose(live: &mut Live, given: &str) -> Result<usize, Trouble> {
    let pools = live.pools()?;
    let is_it = |pool: &&live::Pool| pool.pool.to_string() == given || pool.address == given;
    if let Some(pool) = pools.iter().find(is_it) {
        return Ok(pool.pool);
    }
    let known: Vec<_> = pools.iter().map(|it| format!("{} ({})", it.pool, it.address)).collect();
    Err(Trouble::NoPool { given: given.to_owned(), known: known.join(", ") })
}

/// Once, or until the reader has seen enough. Rates need two looks.
fn print(live: &mut Live, arguments: &Arguments, chosen: Option<usize>) -> Result<(), Trouble> {
    let mut before = Moment::new(live.pools()?);
    loop {
        thread::sleep(arguments.interval);
        let now = Moment::new(live.pools()?);
        let rates = Rates::between(&before, &now);
        let text = if arguments.json {
            format!("{}\n", whole(live, &now, &rates, chosen)?)
        } else if let Some(number) = chosen {
            text::of_pool(&live.pool(number)?, &rates)
        } else {
            text::of_table(&now.pools, &rates, arguments.sort)
        };
        if !put(&text)? || arguments.once {
            return Ok(());
        }
        before = now;
    }
}

/// Prints. `false` when the reader has seen enough.
fn put(text: &str) -> io::Result<bool> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if has_seen_enough(&error) => Ok(false),
        written => written.map(|()| true),
    }
}

/// Everything about all pools, or about one: what `--json` prints and a snapshot holds.
fn whole(
    live: &mut Live,
    now: &Moment,
    rates: &Rates,
    chosen: Option<usize>,
) -> Result<Value, Trouble> {
    let mut pools = Vec::new();
    for pool in now.pools.iter().filter(|pool| chosen.is_none_or(|number| pool.pool == number)) {
        let mut sent = live.pool_as_sent(pool.pool)?;
        let rate = rates.of(pool.pool);
        sent["perSecond"] = json!({ "checkOuts": rate.check_outs, "failures": rate.failures });
        pools.push(sent);
    }
    Ok(json!({
        "program": live.greeting.program,
        "process": live.greeting.process,
        "at": now.at.to_string(),
        "pools": pools,
    }))
}

/// Writes a snapshot into a new file of this folder. Returns its path.
fn snapshot(
    live: &mut Live,
    now: &Moment,
    rates: &Rates,
    folder: &Path,
) -> Result<PathBuf, Trouble> {
    let whole = whole(live, now, rates, None)?;
    let time: String = now.at.to_string().chars().filter(|it| !"-:".contains(*it)).collect();
    let path = folder.join(format!("cenote-{time}-{}-snapshot.json", live.greeting.process));
    let written = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&path)
        .and_then(|mut file| writeln!(file, "{whole:#}"));
    written.map(|()| path.clone()).map_err(|source| Trouble::File { path, source })
}
