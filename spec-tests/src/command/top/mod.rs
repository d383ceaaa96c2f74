//! `cenote top SOCKET`: the pools of a running process, as they are now.

mod arguments;
mod live;
mod rates;
mod screen;
mod state;
mod table;
mod text;

use std::fs::File;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::thread;

use ratatui::crossterm::terminal;
use serde_json::{Value, json};

use self::live::{Live, Refused};
use self::rates::{Moment, Rates};
use super::Failure;
use super::output::has_seen_enough;

pub(super) use self::arguments::Arguments;

/// Shows the pools until the user quits; with `--once` or `--json`, prints them.
pub(super) fn run(arguments: &Arguments) -> Result<bool, Failure> {
    let is_printed = arguments.once || arguments.json;
    let mut live = Live::connect(&arguments.socket)?;
    if !is_printed && !io::stdout().is_terminal() {
        return Err("standard output is not a terminal: use --once, or --json".into());
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
fn choose(live: &mut Live, given: &str) -> Result<usize, Failure> {
    let pools = live.pools()?;
    let is_it = |pool: &&live::Pool| pool.pool.to_string() == given || pool.address == given;
    if let Some(pool) = pools.iter().find(is_it) {
        return Ok(pool.pool);
    }
    let known: Vec<_> = pools.iter().map(|it| format!("{} ({})", it.pool, it.address)).collect();
    let known = known.join(", ");
    Err(format!("--pool {given}: the process has no such pool; it has {known}").into())
}

/// Once, or until the reader has seen enough. Rates need two looks.
fn print(live: &mut Live, arguments: &Arguments, chosen: Option<usize>) -> Result<(), Failure> {
    let is_terminal = io::stdout().is_terminal();
    let columns = is_terminal.then(terminal::size).and_then(Result::ok);
    let width = columns.map_or(usize::MAX, |(columns, _)| columns.into());
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
            text::of_table(&now.pools, &rates, arguments.sort, width)
        };
        let mut out = io::stdout().lock();
        match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            Err(error) if has_seen_enough(&error) => return Ok(()),
            written => written?,
        }
        if arguments.once {
            return Ok(());
        }
        before = now;
    }
}

/// Everything about all pools, or about one: what `--json` prints and a snapshot holds.
fn whole(
    live: &mut Live,
    now: &Moment,
    rates: &Rates,
    chosen: Option<usize>,
) -> Result<Value, Failure> {
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
        "at": now.at,
        "pools": pools,
    }))
}

/// Writes a snapshot into a new file of this folder. Returns its path.
fn snapshot(
    live: &mut Live,
    now: &Moment,
    rates: &Rates,
    folder: &Path,
) -> Result<PathBuf, Failure> {
    let whole = whole(live, now, rates, None)?;
    let time = now.at.replace(['-', ':'], "");
    let path = folder.join(format!("cenote-{time}-{}-snapshot.json", live.greeting.process));
    let written = File::create_new(&path).and_then(|mut file| writeln!(file, "{whole:#}"));
    written.map_err(|error| Refused(format!("{}: {error}", path.display())))?;
    Ok(path)
}
