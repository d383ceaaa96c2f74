use std::fmt;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::time::Duration;

use cenote_core::uri::{ConnectionString, Problem, UriWarning};
use clap::ValueEnum;

use super::Trouble;
use crate::command::output::{expect_different, tell};

/// What `cenote run` can be told.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The server, as a connection string, with the pool's options; of several hosts the first.
    /// Without it cenote brings a server along, in this process, with TLS and a login by SCRAM
    uri: Option<Private>,
    /// What carries the pool out
    #[arg(long, value_enum, default_value_t = Shell::Tokio)]
    shell: Shell,
    /// How many tasks share the pool: each checks a connection out, pings, and returns it; on mio each
    /// is a thread
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 64)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=100_000))]
    tasks: u32,
    /// For how long [default: 10, or without limit if there is --ops]
    #[arg(long, allow_negative_numbers = true, value_name = "S", value_parser = seconds)]
    seconds: Option<Duration>,
    /// Stop after so many operations
    #[arg(long, allow_negative_numbers = true, value_name = "K")]
    ops: Option<NonZeroU64>,
    /// Options of the pool for the server that comes along, as in a connection string:
    /// "maxPoolSize=8&maxIdleTimeMS=500" [default: maxPoolSize=10]
    #[arg(long)]
    options: Option<Private>,
    /// Break, stall and restart the server that comes along, and tell each loss and recovery
    #[arg(long)]
    chaos: bool,
    /// Write every event to this file, one a line, for `cenote check`
    #[arg(long, value_name = "FILE")]
    events: Option<PathBuf>,
    /// Record all that happens to the pool in this file, for `cenote replay`
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Write a page that shows it: one file, which any browser opens without a network
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// The summary as one JSON object
    #[arg(long)]
    pub(super) json: bool,
}

/// A text that may hold a password, and is not shown.
#[derive(Clone)]
struct Private(String);

/// What carries a pool out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Shell {
    /// Tasks on tokio
    Tokio,
    /// Threads, each of which is a task, and an event loop on mio
    Mio,
}

/// What is to be done, once it is clear that it can be.
pub(super) struct Plan {
    pub(super) shell: Shell,
    pub(super) target: Target,
    pub(super) tasks: u32,
    pub(super) time: Option<Duration>,
    pub(super) operations: Option<u64>,
    pub(super) chaos: bool,
    pub(super) events: Option<PathBuf>,
    pub(super) trace: Option<PathBuf>,
    pub(super) html: Option<PathBuf>,
}

/// Where the server is.
pub(super) enum Target {
    /// In this process, with these options of the pool.
    Embedded { options: String },
    /// Somewhere else.
    Elsewhere { uri: String },
}

/// More are not to be had of every operating system, and some end the process that asks for them.
const MAX_THREADS: u32 = 10_000;

/// Without `--seconds` and `--ops`.
const TIME: Duration = Duration::from_secs(10);

impl Arguments {
    pub(super) fn plan(&self) -> Result<Plan, Trouble> {
        let files = [
            ("--events", self.events.as_deref()),
            ("--trace", self.trace.as_deref()),
            ("--html", self.html.as_deref()),
        ];
        expect_different(&files)?;
        let given = self.options.as_ref();
        let target = match &self.uri {
            Some(_) if self.chaos => return Err(Trouble::ChaosElsewhere),
            Some(_) if given.is_some() => return Err(Trouble::OptionsElsewhere),
            Some(Private(uri)) => {
                warn(&ConnectionString::parse(uri)?);
                Target::Elsewhere { uri: uri.clone() }
            }
            None => Target::Embedded {
                options: options(given.map_or("", |Private(text)| text), self.chaos)?,
            },
        };
        if self.shell == Shell::Mio && self.tasks > MAX_THREADS {
            return Err(Trouble::Threads { tasks: self.tasks, most: MAX_THREADS });
        }
        let time = self.seconds.or(self.ops.is_none().then_some(TIME));
        Ok(Plan {
            shell: self.shell,
            target,
            tasks: self.tasks,
            time,
            operations: self.ops.map(NonZeroU64::get),
            chaos: self.chaos,
            events: self.events.clone(),
            trace: self.trace.clone(),
            html: self.html.clone(),
        })
    }
}

impl Plan {
    /// How much of it is done after so long, with so many operations begun; 0 if it has no end.
    pub(super) fn part_done(&self, time: Duration, operations: u64) -> f64 {
        let of_time = self.time.map_or(0.0, |all| time.as_secs_f64() / all.as_secs_f64());
        let of_operations = self.operations.map_or(0.0, |all| operations as f64 / all as f64);
        of_time.max(of_operations)
    }
}

impl Shell {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Tokio => "tokio",
            Self::Mio => "mio",
        }
    }
}

/// What was ignored is told, and nobody is kept from running: drivers have to do so.
fn warn(uri: &ConnectionString) {
    uri.warnings().iter().for_each(|warning| tell(format_args!("cenote: {warning}")));
}

/// The options that were given, and ours where there are none. Nobody wrote them for another
/// driver, so what would be ignored is refused.
fn options(given: &str, chaos: bool) -> Result<String, Trouble> {
    let read = ConnectionString::parse(&format!("mongodb://localhost/?{given}"))?;
    if let Some((warning, problem)) = read.warnings().iter().find_map(|it| Some((it, refused(it)?)))
    {
        return Err(Trouble::Options { option: warning.option().to_owned(), problem });
    }
    warn(&read);
    let mut options = given.to_owned();
    let mut default = |name: &str, value: &str| {
        let names = given.split('&').filter_map(|pair| pair.split('=').next());
        if !names.into_iter().any(|it| it.eq_ignore_ascii_case(name)) {
            let and = if options.is_empty() { "" } else { "&" };
            options = format!("{options}{and}{name}={value}");
        }
    };
    default("maxPoolSize", "10");
    if chaos {
        // A server that says nothing is to be noticed while somebody looks.
        default("connectTimeoutMS", "1000");
        default("heartbeatFrequencyMS", "500");
        default("socketTimeoutMS", "500");
    }
    Ok(options)
}

fn refused(warning: &UriWarning) -> Option<String> {
    match warning.problem() {
        Problem::Unknown => Some("no such option".to_owned()),
        Problem::Invalid(expected) => Some(format!("the value is not {expected}")),
        Problem::UnknownEntry { position, known } => {
            Some(format!("entry {position} is none of {}", known.join(", ")))
        }
        Problem::Repeated
        | Problem::Renamed(_)
        | Problem::Superseded(_)
        | Problem::LegacyBoolean(_)
        | Problem::EmptyPair
        | Problem::Useless(_)
        | _ => None,
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let expected = || format!("expected a number of seconds greater than 0, at most {}", u64::MAX);
    let time = text.parse().ok().and_then(|number| Duration::try_from_secs_f64(number).ok());
    time.filter(|time| !time.is_zero()).ok_or_else(expected)
}

impl From<String> for Private {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Debug for Private {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}
