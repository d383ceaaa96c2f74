//! Collects what a picture shows while a trace is replayed.

use std::collections::BTreeMap;
use std::io::Read;

use cenote_core::pool::{Input, Instant, PoolState};
use cenote_core::trace::Traced;

use super::detail::Detail;
use super::model::{Life, Mark, MarkKind, Picture, Use, UseKind};
use super::rows;
use super::texts::Texts;
use crate::clock::Clock;
use crate::explain::{self, Analysis, Counts, Findings};
use crate::step_reader::{StepReader, View};
use crate::text::{self, counted};
use crate::topology::ServerHistory;

/// Gathers a [`Picture`].
#[derive(Debug)]
pub struct Collector {
    pub(super) picture: Picture,
    pub(super) analysis: Analysis,
    pub(super) open: BTreeMap<u64, Open>,
    pub(super) texts: Texts,
    /// The last mark of each time that the pool became ready, and how often it was marked ready again.
    pub(super) ready: Vec<(usize, u64)>,
    /// Why connections of an older generation are stale.
    pub(super) stale: String,
    /// The end of the last back-off.
    pub(super) backs_off_until: Option<Instant>,
    detail: Detail,
}

/// A connection, and what it does.
#[derive(Clone, Copy, Debug)]
pub(super) struct Open {
    pub(super) slot: u32,
    pub(super) start: u64,
    pub(super) why: u32,
    pub(super) note: u32,
    pub(super) place: u32,
    pub(super) activity: Option<(UseKind, u64, u64)>,
}

impl Collector {
    /// Starts with a pool in its initial state.
    pub fn new(pool: &PoolState<Traced>) -> Self {
        let mut collector = Self::from(pool.now());
        collector.take_over(pool);
        collector
    }

    /// From this time on, of a pool without connections.
    pub(super) fn from(start: Instant) -> Self {
        let start = start.as_nanos();
        Self {
            picture: Picture { start, end: start, ..Picture::default() },
            analysis: Analysis::new(SLOWEST),
            open: BTreeMap::new(),
            texts: Texts::default(),
            ready: Vec::new(),
            stale: "the pool was cleared before the trace begins".to_owned(),
            backs_off_until: None,
            detail: Detail::default(),
        }
    }

    /// Joins nothing, however long the trace is.
    #[must_use]
    pub fn whole(self) -> Self {
        Self { detail: Detail::whole(), ..self }
    }

    /// Adds a step.
    pub fn add(&mut self, view: &View<'_>) {
        let now = view.pool.now().as_nanos();
        let lost = view.step.lost_before;
        let is_new = lost.is_some() || matches!(view.step.input, Input::ResetAfterFork);
        if is_new {
            let (end, counts) = (
                Instant::from_nanos(self.picture.end),
                Counts::of(&view.before, view.pool.options()),
            );
            let waiting = self.analysis.still_waiting(view.holders, end, counts);
            self.abandon(&waiting);
        }
        self.picture.end = now;
        self.picture.steps += 1;
        let clears = self.analysis.clear_count();
        self.analysis.add(view, true);
        if is_new {
            self.take_over(view.pool);
            let told = lost
                .map(|lost| format!("{} not recorded", counted(lost, "input was", "inputs were")));
            let told = told.unwrap_or_else(|| text::input(&view.step.input));
            return self.mark(view, MarkKind::Other, 0, &told);
        }
        if view.step.refused {
            let told = format!("refused: {}", text::input(&view.step.input));
            return self.mark(view, MarkKind::Other, 0, &told);
        }
        self.reasons(view);
        self.input(view, now);
        for action in view.actions {
            self.action(view, action, now);
        }
        self.waits(view);
        let cleared = self.analysis.clear_count();
        if cleared > clears {
            let told = text::input(&view.step.input);
            self.mark(view, MarkKind::Clear, cleared as u64, &told);
        }
        self.counts(&view.pool.snapshot(), now);
        self.detail.limit(&mut self.picture);
    }

    /// Ends everything that is still open.
    /// `server` is what became of the pool's server, if that is known.
    pub fn finish<R: Read>(
        mut self,
        reader: &StepReader<R>,
        clock: Clock,
        server: Option<ServerHistory>,
    ) -> Picture {
        let pool = reader.pool();
        let counts = Counts::of(&pool.snapshot(), pool.options());
        let waiting = self.analysis.still_waiting(reader.holders(), pool.now(), counts);
        self.abandon(&waiting);
        let analysis = std::mem::replace(&mut self.analysis, Analysis::new(0));
        let findings = Findings::new(analysis, reader, clock, None, server);
        self.complete(&findings, clock)
    }

    /// With what was found in the whole.
    pub(super) fn complete(mut self, findings: &Findings, clock: Clock) -> Picture {
        for (leak, line) in findings.leaked() {
            let (number, start) = (leak.connection, leak.since.as_nanos());
            let is_it = |usage: &&mut Use| usage.number == number && usage.start == start;
            let text = self.texts.index(&format!("looks leaked: {}", line.trim()), LEAKED);
            if let Some(usage) = self.picture.uses.iter_mut().rev().find(is_it) {
                usage.note = text;
            }
            let at = start.max(self.picture.start);
            let mark = Mark { at, kind: MarkKind::Leak, step: leak.step, text, about: number };
            self.picture.marks.push(mark);
        }
        for (mark, again) in self.ready {
            if again > 0 {
                let again = counted(again, "time", "times");
                let told = format!("Ready, repeated {again} while the pool was ready");
                self.picture.marks[mark].text = self.texts.index(&told, "Ready, repeatedly");
            }
        }
        self.picture.marks.sort_by_key(|mark| (mark.at, mark.step));
        rows::assign(&mut self.picture.waits);
        let clears =
            (1..=findings.clear_count().min(CLEARS_MAX) as u64).map(|it| findings.clear(it));
        let told = |text: String| text::wrapped(&text, text::PAGE);
        self.picture.clears = clears.map(|clear| told(clear.unwrap_or_default())).collect();
        self.picture.summary = told(findings.summary());
        self.picture.utc_offset = clock.utc_offset().minutes();
        self.texts.index("", "");
        self.picture.texts = self.texts.into_list();
        self.picture
    }

    pub(super) fn place(&mut self, place: Option<&str>) -> u32 {
        place.map_or(0, |place| self.texts.index(place, "one of many places"))
    }

    /// Says how the use of a connection goes or ends.
    pub(super) fn note(&mut self, number: u64, told: &str, brief: &str) {
        let Some(open) = self.open.get_mut(&number) else { return };
        let earlier = self.texts.get(open.note);
        let all = if earlier.is_empty() { told.to_owned() } else { format!("{earlier}; {told}") };
        open.note = self.texts.index(&all, brief);
    }

    /// Ends the activity of a connection.
    pub(super) fn rest(&mut self, number: u64, now: u64) {
        let Some(open) = self.open.get_mut(&number) else { return };
        let (slot, note) = (open.slot, std::mem::take(&mut open.note));
        let place = std::mem::take(&mut open.place);
        if let Some((kind, holder, start)) = open.activity.take() {
            self.picture.uses.push(Use {
                slot,
                number,
                kind,
                holder,
                start,
                end: now,
                note,
                place,
                count: 1,
                busy: now - start,
            });
        }
    }

    pub(super) fn close(&mut self, number: u64, now: u64) {
        self.rest(number, now);
        if let Some(Open { slot, start, why, .. }) = self.open.remove(&number) {
            self.picture.lives.push(Life { slot, number, start, end: now, why });
        }
    }

    /// Everything that is open ends here.
    fn abandon(&mut self, waiting: &[explain::Wait]) {
        let now = self.picture.end;
        let open: Vec<u64> = self.open.keys().copied().collect();
        for number in open {
            let is_used = matches!(self.open[&number].activity, Some((UseKind::InUse, ..)));
            if is_used {
                self.note(number, HELD, HELD);
            }
            self.close(number, now);
        }
        waiting.iter().for_each(|wait| self.wait(wait));
    }
}

const HELD: &str = "not checked in by the end of the trace";
const LEAKED: &str = "looks leaked";
/// How many of the longest waits the summary lists.
pub(super) const SLOWEST: usize = 5;
/// How many clears are described.
const CLEARS_MAX: usize = 500;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use cenote_core::pool::{Action, PoolOptions};
    use cenote_core::trace::JournalOptions;

    use super::*;
    use crate::clock::UtcOffset;
    use crate::record::{self, RecordedRun};
    use crate::traffic::{Scene, Simulated};

    fn picture(trace: &[u8]) -> Picture {
        let mut reader = StepReader::new(trace).expect("a trace");
        let mut collector = Collector::new(reader.pool());
        while reader.step(|view| collector.add(view)).expect("it agrees").is_some() {}
        let clock = Clock::new(reader.header(), UtcOffset::default());
        collector.finish(&reader, clock, None)
    }

    #[test]
    fn repeated_ready_inputs_have_one_mark() {
        let ignore = &mut |_: Action<Simulated>| {};
        let pool = PoolState::new(Instant::ORIGIN, PoolOptions::default(), ignore);
        let pool = pool.expect("usable options");
        let mut run = RecordedRun::begin(pool, JournalOptions::default(), Vec::new());
        let clear = Input::Clear { cause: "gone", interrupt: false, service: None };
        let inputs = [Input::Ready, Input::Ready, Input::Ready, clear, Input::Ready];
        for (second, input) in (0..).zip(inputs) {
            run.feed(Instant::ORIGIN + Duration::from_secs(second), input).expect("no I/O");
        }
        let picture = picture(&run.finish().expect("no I/O"));
        let told = |mark: &Mark| (mark.kind, picture.texts[mark.text as usize].as_str());
        let marks: Vec<_> = picture.marks.iter().map(told).collect();
        assert_eq!(
            marks,
            [
                (MarkKind::Ready, "Ready, repeated 2 times while the pool was ready"),
                (MarkKind::Clear, "Clear (gone)"),
                (MarkKind::Ready, "Ready")
            ]
        );
        assert!(picture.clears[0].contains("gone"), "{:?}", picture.clears);
    }

    #[test]
    fn closed_connections_have_their_reason() {
        let scene = Scene::new(3, 5);
        let options = scene.options.clone().with_max_idle_time(Duration::from_millis(30));
        let pause = Duration::from_millis(500);
        let scene = Scene { options, pause, failure_every: 100, ..scene };
        let trace = record::traffic(scene, 3_000, JournalOptions::default(), Vec::new());
        let picture = picture(&trace.expect("no I/O"));
        let closed = picture.lives.iter().filter(|life| life.end < picture.end);
        let why: Vec<_> = closed.map(|life| picture.texts[life.why as usize].as_str()).collect();
        assert!(why.iter().all(|why| !why.is_empty()), "{why:?}");
        for expected in [
            "idle for maxIdleTimeMS, 30 ms",
            "error: connection reset by peer",
            "stale: the pool was cleared (connection reset by peer)",
        ] {
            assert!(why.contains(&expected), "no {expected}: {why:?}");
        }
    }
}
