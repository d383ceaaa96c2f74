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
        Ok(Self { reader, part, has_met: false, is_cut: false, chosen, path, refused: 0 })
    }

    /// Passes the steps on; returns whether they are as they were recorded.
    pub(super) fn each(
        &mut self,
        mut show: impl FnMut(&View<'_>, &Part) -> io::Result<()>,
    ) -> Result<bool, Failure> {
        let Self { reader, part, has_met, refused, .. } = self;
        let mut shown = Ok(());
        let outcome = reader.each(|view| {
            *refused += u64::from(view.step.refused);
            *has_met = part.until.as_ref().is_some_and(|until| until.holds_for(view));
            shown = show(view, part);
            let stops = shown.is_err() || *has_met;
            if stops { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        shown?;
        let Err(error) = outcome else { return Ok(true) };
        self.is_cut = true;
        self.chosen.ended_early(self.path, error)
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
            "cenote: {path}: {inputs} refused, a bug of the program that recorded: --shrink misuse finds \
             it"
        ));
    }
    refused == 0
}
