use std::fmt;
use std::net::SocketAddr;
use std::num::{NonZeroU32, NonZeroU64};
use std::path::PathBuf;
use std::time::Duration;

use cenote_core::uri::{ConnectionString, Problem, UriWarning};
use clap::ValueEnum;

use super::progress::Goal;
use crate::command::Failure;
use crate::command::input::first_line;
use crate::command::output::{expect_different, tell};

/// Arguments of `cenote run`.
#[derive(Debug, clap::Args)]
pub(in crate::command) struct Arguments {
    /// Connection string, with the pool's options; of several hosts all servers are found and loaded.
    /// Without it, cenote starts a mock server in this process, with TLS and SCRAM
    uri: Option<Private>,
    /// Read the connection string from the first line of this file, or of standard input for `-`:
    /// other users can see arguments
    #[arg(long, value_name = "FILE", conflicts_with = "uri")]
    uri_file: Option<PathBuf>,
    /// Look the records of mongodb+srv:// up at this name server instead of the system's, such as
    /// 127.0.0.1:53; may be given several times
    #[arg(long = "name-server", value_name = "IP:PORT")]
    pub(super) name_servers: Vec<SocketAddr>,
    /// Load the server of the connection string without asking
    #[arg(long)]
    pub(super) yes: bool,
    /// The shell that runs the pool
    #[arg(long, value_enum, default_value_t = Shell::Tokio)]
    pub(super) shell: Shell,
    /// Number of tasks that share the pool; each checks out a connection, pings and checks it in. On mio
    /// each is a thread
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 64)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(super) tasks: u32,
    /// Run for S seconds [default: 10, or no limit with --ops]
    #[arg(long, allow_negative_numbers = true, value_name = "S", value_parser = seconds)]
    seconds: Option<Duration>,
    /// Stop after K operations
    #[arg(long, allow_negative_numbers = true, value_name = "K")]
    pub(super) ops: Option<NonZeroU64>,
    /// Pool options for the mock server, as in a connection string:
    /// "maxPoolSize=8&maxIdleTimeMS=500" [default: maxPoolSize=10]
    #[arg(long)]
    options: Option<Private>,
    /// Inject faults into the mock server and the network, and report each loss and recovery
    #[arg(long)]
    pub(super) chaos: bool,
    /// One caller in N gives up, while it waits for a connection or in the middle of an operation
    #[arg(long, allow_negative_numbers = true, value_name = "N")]
    pub(super) give_up: Option<NonZeroU32>,
    /// Write every event to this file, one per line, for `cenote check`
    #[arg(long, value_name = "FILE")]
    pub(super) events: Option<PathBuf>,
    /// Record the pool's inputs in this file, for `cenote replay`; where a client finds its servers, those of each
    /// pool and what the servers said, in files of this folder
    #[arg(long, value_name = "PATH")]
    pub(super) trace: Option<PathBuf>,
    /// Write a page that shows the run: one file, for any browser, without a network
    #[arg(long, value_name = "FILE")]
    pub(super) html: Option<PathBuf>,
    /// Let `cenote top PATH` look at the pool meanwhile, through a socket that is created there
    #[cfg(unix)]
    #[arg(long, value_name = "PATH")]
    pub(super) inspect: Option<PathBuf>,
    /// Print the summary as one JSON object
    #[arg(long)]
    pub(super) json: bool,
}

/// A text that may contain a password; `Debug` does not show it.
#[derive(Clone)]
struct Private(String);

/// The shell that runs a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Shell {
    /// Tasks on tokio
    Tokio,
    /// One thread per task, and an event loop on mio
    Mio,
}

/// The validated arguments.
pub(super) struct Plan<'a> {
    pub(super) arguments: &'a Arguments,
    pub(super) target: Target,
    pub(super) goal: Goal,
}

/// Where the server is.
pub(super) enum Target {
    /// In this process, with these options of the pool.
    Embedded { options: String },
    /// Somewhere else.
    Elsewhere { uri: String },
}

/// Some operating systems have no more threads, and some kill a process that asks for more.
const MAX_THREADS: u32 = 10_000;

/// Without `--seconds` and `--ops`.
const TIME: Duration = Duration::from_secs(10);

impl Arguments {
    pub(super) fn plan(&self) -> Result<Plan<'_>, Failure> {
        let files = [
            ("--events", self.events.as_deref()),
            ("--trace", self.trace.as_deref()),
            ("--html", self.html.as_deref()),
        ];
        expect_different(&files)?;
        let given = self.options.as_ref();
        let target = match self.uri()? {
            Some(_) if self.chaos => {
                return Err(
                    "--chaos injects faults into the built-in mock server: omit the URI".into()
                );
            }
            Some(_) if given.is_some() => {
                let why = "--options is for the built-in mock server: put the options into the URI";
                return Err(why.into());
            }
            Some(uri) => {
                warn(&ConnectionString::parse(&uri)?);
                Target::Elsewhere { uri }
            }
            None => Target::Embedded {
                options: options(given.map_or("", |Private(text)| text), self.chaos)?,
            },
        };
        if self.shell == Shell::Mio && self.tasks > MAX_THREADS {
            let tasks = self.tasks;
            let why = format!("--tasks {tasks}: on mio each is a thread, at most {MAX_THREADS}");
            return Err(why.into());
        }
        let time = self.seconds.or(self.ops.is_none().then_some(TIME));
        Ok(Plan { arguments: self, target, goal: Goal { time, operations: self.ops } })
    }

    /// The connection string, if one was given.
    fn uri(&self) -> Result<Option<String>, Failure> {
        match (&self.uri, &self.uri_file) {
            (Some(Private(uri)), _) => Ok(Some(uri.clone())),
            (None, Some(path)) => {
                first_line(path).map(Some).map_err(|error| format!("--uri-file: {error}").into())
            }
            (None, None) => Ok(None),
        }
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

/// Prints warnings about ignored options; as in drivers, they are no errors.
fn warn(uri: &ConnectionString) {
    uri.warnings().iter().for_each(|warning| tell(format_args!("cenote: {warning}")));
}

/// The given options, completed with defaults. They are written for this command alone, so an option
/// that would be ignored is an error.
fn options(given: &str, chaos: bool) -> Result<String, Failure> {
    let read = ConnectionString::parse(&format!("mongodb://localhost/?{given}"))?;
    if let Some((warning, problem)) = read.warnings().iter().find_map(|it| Some((it, refused(it)?)))
    {
        return Err(format!("--options: {}: {problem}", warning.option()).into());
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
        // Detect a stalled server within the run.
        default("connectTimeoutMS", "1000");
        default("heartbeatFrequencyMS", "500");
        default("socketTimeoutMS", "500");
    }
    Ok(options)
}

fn refused(warning: &UriWarning) -> Option<String> {
    match warning.problem() {
        Problem::Unknown { similar } => Some(match similar {
            Some(name) => format!("no such option, did you mean {name}?"),
            None => "no such option".to_owned(),
        }),
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
    let expected = || format!("`{text}` is not a number of seconds greater than 0");
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
