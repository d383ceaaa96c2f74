//! The numbers of a page, column by column.

use std::io::{self, BufWriter, Write};

use base64::engine::general_purpose::{GeneralPurpose, STANDARD};
use base64::write::EncoderWriter;
use flate2::Compression;
use flate2::write::ZlibEncoder;

use super::model::{Life, Limits, Mark, Picture, Point, Use, Wait};

/// The nanoseconds of a tick: the smallest number for which all times fit into 32 bits.
pub(super) fn tick(picture: &Picture) -> u64 {
    // What exists at the start may have begun long before.
    let begin = beginning(picture);
    (picture.time().1 - begin) / u64::from(u32::MAX) + 1
}

fn beginning(picture: &Picture) -> u64 {
    let lives = picture.lives.iter().map(|life| life.start);
    let waits = picture.waits.iter().map(|wait| wait.start);
    let start = picture.time().0;
    lives.chain(waits).chain([start]).min().unwrap_or(start)
}

/// The columns and their lengths.
type Names = Vec<(&'static str, usize)>;

/// Numbers of 32 bits, column by column, compressed. Times are ticks since the beginning; `…End` and
/// `…At` are stored as differences.
pub(super) struct Columns<W: Write> {
    names: Names,
    begin: u64,
    tick: u64,
    out: BufWriter<ZlibEncoder<EncoderWriter<'static, GeneralPurpose, W>>>,
}

impl<W: Write> Columns<W> {
    /// Writes the columns of a picture as base64, and returns the name and the length of each.
    pub(super) fn write(picture: &Picture, out: W) -> io::Result<Names> {
        let (begin, tick) = (beginning(picture), tick(picture));
        let packed = ZlibEncoder::new(EncoderWriter::new(out, &STANDARD), LEVEL);
        let mut it = Self { names: Names::new(), begin, tick, out: BufWriter::new(packed) };
        it.numbers("begin", [(begin >> 32) as u32, begin as u32])?;
        it.lives(&picture.lives)?;
        let is_joined = picture.joined_below > 0;
        it.uses(&picture.uses, is_joined)?;
        it.waits(&picture.waits, is_joined)?;
        it.points(&picture.points)?;
        it.limits(&picture.limits)?;
        it.marks(&picture.marks)?;
        let packed = it.out.into_inner().map_err(io::IntoInnerError::into_error)?;
        packed.finish()?.finish()?;
        Ok(it.names)
    }

    /// Times as ticks since the beginning.
    fn ticks(&self) -> impl Fn(u64) -> u32 + use<W> {
        let (begin, tick) = (self.begin, self.tick);
        move |at| (at.saturating_sub(begin) / tick) as u32
    }

    fn lives(&mut self, lives: &[Life]) -> io::Result<()> {
        let time = self.ticks();
        self.differences("lifeEnd", lives.iter().map(|life| time(life.end)))?;
        self.numbers("lifeLength", lives.iter().map(|life| time(life.end) - time(life.start)))?;
        self.numbers("lifeSlot", lives.iter().map(|life| life.slot))?;
        self.numbers("lifeNumber", lives.iter().map(|life| life.number as u32))?;
        self.numbers("lifeWhy", lives.iter().map(|life| life.why))
    }

    fn uses(&mut self, uses: &[Use], is_joined: bool) -> io::Result<()> {
        let time = self.ticks();
        self.differences("useEnd", uses.iter().map(|usage| time(usage.end)))?;
        self.numbers("useLength", uses.iter().map(|usage| time(usage.end) - time(usage.start)))?;
        self.numbers("useSlot", uses.iter().map(|usage| usage.slot))?;
        self.numbers("useNumber", uses.iter().map(|usage| usage.number as u32))?;
        self.numbers("useHolder", uses.iter().map(|usage| usage.holder as u32))?;
        self.numbers("usePlace", uses.iter().map(|usage| usage.place))?;
        self.numbers("useKind", uses.iter().map(|usage| usage.kind as u32))?;
        let noted = || uses.iter().enumerate().filter(|(_, usage)| usage.note != 0);
        self.differences("noteAt", noted().map(|(index, _)| index as u32))?;
        self.numbers("noteText", noted().map(|(_, usage)| usage.note))?;
        // Of a short trace these are not needed.
        let joined = if is_joined { uses } else { &[] };
        let tick = self.tick;
        self.numbers("useCount", joined.iter().map(|usage| usage.count))?;
        self.numbers("useSum", joined.iter().map(|usage| (usage.busy / tick) as u32))
    }

    fn waits(&mut self, waits: &[Wait], is_joined: bool) -> io::Result<()> {
        let time = self.ticks();
        self.differences("waitEnd", waits.iter().map(|wait| time(wait.end)))?;
        self.numbers("waitLength", waits.iter().map(|wait| time(wait.end) - time(wait.start)))?;
        self.numbers("waitRow", waits.iter().map(|wait| wait.row))?;
        self.numbers("waitId", waits.iter().map(|wait| wait.id as u32))?;
        self.numbers("waitConnection", waits.iter().map(|wait| wait.connection as u32))?;
        self.numbers("waitOutcome", waits.iter().map(|wait| wait.outcome.into()))?;
        // In microseconds: a limit may be much longer than the trace.
        let micros = |nanos: u64| u32::try_from(nanos / 1_000).unwrap_or(u32::MAX);
        self.numbers("waitLimit", waits.iter().map(|wait| micros(wait.limit)))?;
        // 0 is unknown.
        let ahead = |ahead: Option<u32>| ahead.map_or(0, |ahead| ahead.saturating_add(1));
        self.numbers("waitAhead", waits.iter().map(|wait| ahead(wait.ahead)))?;
        self.numbers("waitWhy", waits.iter().map(|wait| wait.why))?;
        self.numbers("waitPlace", waits.iter().map(|wait| wait.place))?;
        let joined = if is_joined { waits } else { &[] };
        let tick = self.tick;
        self.numbers("waitCount", joined.iter().map(|wait| wait.count))?;
        self.numbers("waitSum", joined.iter().map(|wait| (wait.busy / tick) as u32))
    }

    fn points(&mut self, points: &[Point]) -> io::Result<()> {
        let time = self.ticks();
        self.differences("pointAt", points.iter().map(|point| time(point.at)))?;
        self.numbers("pointTotal", points.iter().map(|point| point.total))?;
        self.numbers("pointInUse", points.iter().map(|point| point.in_use))?;
        self.numbers("pointPending", points.iter().map(|point| point.pending))?;
        self.numbers("pointWaiting", points.iter().map(|point| point.waiting))
    }

    fn limits(&mut self, limits: &[Limits]) -> io::Result<()> {
        let time = self.ticks();
        self.differences("limitAt", limits.iter().map(|limits| time(limits.at)))?;
        self.numbers("limitMax", limits.iter().map(|limits| limits.max))?;
        self.numbers("limitMin", limits.iter().map(|limits| limits.min))?;
        self.numbers("limitConnecting", limits.iter().map(|limits| limits.connecting))
    }

    fn marks(&mut self, marks: &[Mark]) -> io::Result<()> {
        let time = self.ticks();
        self.differences("markAt", marks.iter().map(|mark| time(mark.at)))?;
        self.numbers("markKind", marks.iter().map(|mark| mark.kind as u32))?;
        self.numbers("markStep", marks.iter().map(|mark| mark.step as u32))?;
        self.numbers("markText", marks.iter().map(|mark| mark.text))?;
        self.numbers("markAbout", marks.iter().map(|mark| mark.about as u32))
    }

    fn numbers(
        &mut self,
        name: &'static str,
        numbers: impl IntoIterator<Item = u32>,
    ) -> io::Result<()> {
        let mut count = 0;
        for number in numbers {
            self.out.write_all(&number.to_le_bytes())?;
            count += 1;
        }
        self.names.push((name, count));
        Ok(())
    }

    /// Stores each number as the difference from the previous one; wraps around if it is smaller.
    fn differences(
        &mut self,
        name: &'static str,
        numbers: impl IntoIterator<Item = u32>,
    ) -> io::Result<()> {
        let mut last = 0_u32;
        let differences = numbers.into_iter().map(|number| {
            let difference = number.wrapping_sub(last);
            last = number;
            difference
        });
        self.numbers(name, differences)
    }
}

/// A fast level, which still compresses to a third.
const LEVEL: Compression = Compression::new(2);
