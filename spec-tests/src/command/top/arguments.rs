use std::path::PathBuf;
use std::time::Duration;

use super::table::Column;

/// Arguments of `cenote top`.
#[derive(Debug, clap::Args)]
#[command(after_help = KEYS)]
pub(in crate::command) struct Arguments {
    /// The socket of the process: the path that it passes to `ClientBuilder::inspect` or
    /// `Builder::inspect`
    pub(super) socket: PathBuf,
    /// Print the pools once and exit
    #[arg(long)]
    pub(super) once: bool,
    /// Print each look as a line of JSON, with all connections and requests; with --once a single one
    #[arg(long)]
    pub(super) json: bool,
    /// Show only this pool, by its number or its address
    #[arg(long, value_name = "POOL")]
    pub(super) pool: Option<String>,
    /// Sort by this column, of those below
    #[arg(long, value_enum, value_name = "COLUMN", default_value_t = Column::Waiting, hide_possible_values = true)]
    pub(super) sort: Column,
    /// Look every S seconds; rates are over that time
    #[arg(long, value_name = "S", default_value = "1", value_parser = seconds)]
    #[arg(allow_negative_numbers = true)]
    pub(super) interval: Duration,
    /// The folder for dumps, recordings and snapshots [default: the current one]
    #[arg(long, value_name = "FOLDER")]
    pub(super) into: Option<PathBuf>,
}

const KEYS: &str = "\
Columns:
  #, pool       number and address        status    REC: it is recorded
  in-use        checked out               idle      can be checked out
  pending       being opened              max       maxPoolSize; - no limit
  waiting       without a connection      longest-wait   of one of them
  outs/s        check-outs that succeed   fails/s   and that fail, a second
  failures      check-outs that failed    clears    of the pool

Keys:
  up, down     select a pool          left, right  sort by another column
  Enter, Esc   open the pool, close   r            reverse the order
  s            write a snapshot of everything shown, as JSON
  d            dump the flight recorder of the pool, for `cenote replay`
  R            record the pool from now on; again to stop
  q            quit";

fn seconds(text: &str) -> Result<Duration, String> {
    let time = text.parse().ok().and_then(|number| Duration::try_from_secs_f64(number).ok());
    let expected = "expected a number of seconds from 0.1 to 30";
    time.filter(|time| (0.1..=30.0).contains(&time.as_secs_f64()))
        .ok_or_else(|| expected.to_owned())
}
