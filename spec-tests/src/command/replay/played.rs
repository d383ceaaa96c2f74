//! The trace of a pool, replayed as far as the arguments say.

use std::io::{self, Read};
use std::ops::ControlFlow;
use std::path::Path;

use cenote_replay::step_reader::{StepReader, View};
use cenote_replay::text::counted;

use super::chosen::{Chosen, Part};
use crate::command::Failure;
use crate::command::input::{Source, at, open};
use crate::command::output::tell;

pub(super) struct Played<'a, R> {
    pub(super) reader: StepReader<R>,
    pub(super) part: Part,
    /// The condition of `--until` holds.
    pub(super) has_met: bool,
    /// The rest cannot be read, or differs.
    pub(super) is_cut: bool,
    /// Nothing after the part is needed.
    pub(super) ends_with_part: bool,
    /// A step was in the part.
    is_inside: bool,
    chosen: &'a Chosen,
    path: &'a Path,
    refused: u64,
}

impl<'a> Played<'a, Source> {
    pub(super) fn open(chosen: &'a Chosen) -> Result<Self, Failure> {
        Self::of(chosen, &chosen.trace, open(&chosen.trace)?)
    }
}

impl<'a, R: Read> Played<'a, R> {
    pub(super) fn of(chosen: &'a Chosen, path: &'a Path, source: R) -> Result<Self, Failure> {
        let reader = StepReader::new(source).map_err(at(path))?;
        let part = chosen.part(chosen.clock(reader.header().origin, reader.header().start))?;
        let (has_met, is_cut, ends_with_part, is_inside) = (false, false, false, false);
        let refused = 0;
        Ok(Self { reader, part, has_met, is_cut, ends_with_part, is_inside, chosen, path, refused })
    }

    /// Passes the steps on; returns whether they are as they were recorded.
    pub(super) fn each(
        &mut self,
        mut show: impl FnMut(&View<'_>, &Part) -> io::Result<()>,
    ) -> Result<bool, Failure> {
        let Self { reader, part, has_met, refused, is_inside, .. } = self;
        let mut shown = Ok(());
        let outcome = reader.each(|view| {
            *refused += u64::from(view.step.refused);
            *has_met = part.until.as_ref().is_some_and(|until| until.holds_for(view));
            shown = show(view, part);
            let is_after = *is_inside && !part.contains(view.pool.now());
            *is_inside |= part.contains(view.pool.now());
            let stops = shown.is_err() || *has_met || (self.ends_with_part && is_after);
            if stops { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        shown?;
        let Err(error) = outcome else { return Ok(true) };
        self.is_cut = true;
        self.chosen.ended_early(self.path, error)
    }

    /// It is an error if nothing happened in the part.
    pub(super) fn expect_inside(&self) -> Result<(), Failure> {
        if self.is_inside || !self.chosen.is_part() {
            return Ok(());
        }
        let times = [self.reader.header().start, self.reader.pool().now()];
        let [start, end] = times.map(|time| self.part.clock.both(time));
        let said = format!("nothing happened in that time: the trace is from {start} to {end}");
        Err(at(self.path)(said))
    }

    /// Says what is wrong besides; returns whether nothing is.
    pub(super) fn end(&self) -> bool {
        let is_met = self.chosen.is_met(self.has_met);
        none_refused(self.path, self.refused) && is_met
    }
}

/// A pool refuses inputs that make no sense: the program that recorded has a bug.
pub(super) fn none_refused(path: &Path, refused: u64) -> bool {
    if refused > 0 {
        let path = path.display();
        let inputs = counted(refused, "input was", "inputs were");
        tell(format_args!(
            "cenote: {path}: {inputs} refused, a bug of the program that recorded: `cenote replay \
             --shrink misuse` finds it"
        ));
    }
    refused == 0
}
