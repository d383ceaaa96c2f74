//! The traces of a client together: of its topology, and of its pools.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use cenote_core::pool::Instant;
use cenote_replay::diff::{diff, diff_topologies};
use cenote_replay::history::History;
use cenote_replay::shrink::{self, Property};
use cenote_replay::topology::shrink as shrink_topology;

use super::sources::{Sources, name};
use super::timeline::Timeline;
use super::{Arguments, by_hand, compare};
use crate::command::Failure;
use crate::command::input::{at, open};
use crate::command::output::{shown, tell};

pub(super) fn run(
    arguments: &Arguments,
    sources: &Sources,
    agrees: bool,
    out: &mut impl Write,
) -> Result<bool, Failure> {
    if let Some(other) = &arguments.diff {
        return diff_each(arguments, sources, other, out);
    }
    if let Some(property) = &arguments.shrink {
        return shrink_all(arguments, sources, property, out);
    }
    let (mut timeline, good) = timeline(arguments, sources, agrees)?;
    if arguments.step {
        by_hand(&mut timeline, out)?;
    } else {
        timeline.print(arguments.quiet, out)?;
    }
    Ok(good)
}

/// Each trace with that of the same name, the topology first.
fn diff_each(
    arguments: &Arguments,
    sources: &Sources,
    other: &Path,
    out: &mut impl Write,
) -> Result<bool, Failure> {
    let others = Sources::find(&[other.to_owned()])?;
    let same = |pool: &PathBuf, of: &Sources| {
        of.pools.iter().find(|it| it.file_name() == pool.file_name()).cloned()
    };
    let mut pairs = vec![(sources.topology.clone(), others.topology.clone())];
    pairs.extend(sources.pools.iter().map(|pool| (Some(pool.clone()), same(pool, &others))));
    let new = others.pools.iter().filter(|pool| same(pool, sources).is_none());
    pairs.extend(new.map(|pool| (None, Some(pool.clone()))));
    let mut is_same = true;
    for pair in pairs {
        is_same &= match pair {
            (Some(one), Some(other)) => {
                write!(out, "{}: ", name(&one))?;
                let chosen = arguments.chosen.of(&one);
                if Some(one) == sources.topology {
                    compare(&chosen, &other, diff_topologies, out)?
                } else {
                    compare(&chosen, &other, diff, out)?
                }
            }
            (Some(only), None) | (None, Some(only)) => {
                writeln!(out, "{}: the other client has no such trace", shown(&only))?;
                false
            }
            (None, None) => true,
        };
    }
    Ok(is_same)
}

/// Shrinks the trace of the pool in which a property shows first, and leaves of the topology what that pool follows. What
/// happens in another pool has no effect on this one.
fn shrink_all(
    arguments: &Arguments,
    sources: &Sources,
    property: &Property,
    out: &mut impl Write,
) -> Result<bool, Failure> {
    let mut first: Option<((i64, Instant), &Path, History, Property)> = None;
    for path in &sources.pools {
        let (history, good) = arguments.chosen.of(path).read(History::read)?;
        if !good {
            return Ok(false);
        }
        let clock = arguments.chosen.clock(history.header.origin, history.header.start);
        let property = property.clone().resolve(&clock).map_err(at(path))?;
        let Some(steps) = shrink::shows(&history, &property) else { continue };
        let when = (history.header.origin, history.inputs[steps - 1].at);
        if first.as_ref().is_none_or(|(earliest, ..)| when < *earliest) {
            first = Some((when, path, history, property));
        }
    }
    let shrunk = first.and_then(|(_, path, history, property)| {
        Some((path, history.inputs.len(), shrink::shrink(&history, &property)?))
    });
    let Some((path, before, mut pool)) = shrunk else {
        tell(format_args!("cenote: none of the traces shows {property}"));
        return Ok(false);
    };
    let folder = arguments.out.clone().unwrap_or_default();
    fs::create_dir_all(&folder).map_err(at(&folder))?;
    let is_source = |path: &Path| {
        path.parent().and_then(|it| it.canonicalize().ok()) == folder.canonicalize().ok()
    };
    if is_source(path) {
        return Err(at(&folder)("the traces are there: name another folder with --out"));
    }
    if let Some(topology) = &sources.topology {
        let followed = pool.inputs.iter().rev();
        let followed = followed.filter_map(|entry| Some((entry.follows?, entry.at))).collect();
        let shrunk = shrink_topology(open(topology)?, &followed).map_err(at(topology))?;
        for entry in &mut pool.inputs {
            entry.follows = entry.follows.and_then(|step| shrunk.number_of(step));
        }
        writeln!(out, "{}: shrunk to {} steps", name(topology), shrunk.steps())?;
        let file = folder.join(topology.file_name().unwrap_or_default());
        shrunk.write().and_then(|trace| fs::write(&file, trace)).map_err(at(&file))?;
    }
    let file = folder.join(path.file_name().unwrap_or_default());
    pool.write(Vec::new()).and_then(|trace| fs::write(&file, trace)).map_err(at(&file))?;
    writeln!(out, "{}: {before} steps shrunk to {}", name(path), pool.inputs.len())?;
    writeln!(out, "{}", shrink::summary(&pool))?;
    Ok(true)
}

/// What happened in all traces, and whether all is good.
fn timeline(
    arguments: &Arguments,
    sources: &Sources,
    agrees: bool,
) -> Result<(Timeline, bool), Failure> {
    let (mut timeline, mut clock, mut good) = (Timeline::default(), None, true);
    let chosen = &arguments.chosen;
    if let (Some(path), Some(history)) = (&sources.topology, &chosen.topology) {
        timeline.add_topology(path, history, agrees);
        clock = Some(chosen.clock(history.header.origin, history.header.start));
    }
    let tells_all = arguments.all || arguments.step;
    for pool in &sources.pools {
        let (its, is_good) = timeline.add_pool(&chosen.of(pool), tells_all)?;
        clock.get_or_insert(its);
        good &= is_good;
    }
    timeline.order(clock);
    Ok((timeline, good))
}
