//! Collects what a picture shows while a trace is replayed.

use std::collections::BTreeMap;
use std::io::Read;

use cenote_core::pool::{
    Action, CloseReason, ConnectionState, Event, Health, Input, Instant, PoolState, Snapshot,
    WaiterId,
};
use cenote_core::trace::{Cause, Traced};

use super::model::{Life, Limits, Mark, MarkKind, Picture, Point, Use, UseKind, Wait};
use super::rows;
use super::texts::Texts;
use crate::clock::Clock;
use crate::explain::{self, Analysis, Counts, Failure, Findings, Outcome};
use crate::holders::Activity;
use crate::step_reader::{StepReader, View};
use crate::text::{self, counted, span};
use crate::topology::ServerHistory;

/// Gathers a [`Picture`].
#[derive(Debug)]
pub struct Collector {
    pub(super) picture: Picture,
    analysis: Analysis,
    open: BTreeMap<u64, Open>,
    pub(super) texts: Texts,
    /// The last mark of each time that the pool became ready, and how often it was marked ready again.
    ready: Vec<(usize, u64)>,
    /// Why connections of an older generation are stale.
    stale: String,
    /// The end of the last back-off.
    backs_off_until: Option<Instant>,
}

/// A connection, and what it does.
#[derive(Clone, Copy, Debug)]
struct Open {
    slot: u32,
    start: u64,
    why: u32,
    note: u32,
    place: u32,
    activity: Option<(UseKind, u64, u64)>,
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
        }
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
        (self.picture.end, self.picture.steps) = (now, view.step.number);
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

    /// Why connections are closed in this step.
    fn reasons(&mut self, view: &View<'_>) {
        if let Input::Clear { cause, .. } = &view.step.input {
            self.stale = format!("the pool was cleared ({cause})");
        } else if matches!(view.step.input, Input::RetireConnections) {
            "all older connections were retired".clone_into(&mut self.stale);
        }
        for action in view.actions {
            let Action::EmitEvent(Event::ConnectionClosed { connection_id, reason, error }) =
                action
            else {
                continue;
            };
            let why = self.reason(view, *connection_id, *reason, error.as_ref());
            let why = self.texts.index(&why, reason.as_str());
            if let Some(open) = self.open.get_mut(connection_id) {
                open.why = why;
            }
        }
    }

    fn reason(
        &self,
        view: &View<'_>,
        number: u64,
        reason: CloseReason,
        error: Option<&Cause>,
    ) -> String {
        match (reason, error) {
            (CloseReason::Error, Some(error)) => format!("error: {error}"),
            (CloseReason::Stale, _) => format!("stale: {}", self.stale),
            (CloseReason::PoolClosed, _) => "the pool was closed".to_owned(),
            (CloseReason::Idle, _) => {
                let limit = view.pool.options().max_idle_time.filter(|limit| !limit.is_zero());
                let idle = view.holders.connections.get(&number);
                let idle = idle.filter(|connection| connection.activity == Activity::Idle);
                let idle = idle.map(|idle| view.pool.now().saturating_since(idle.since));
                match limit.zip(idle).filter(|(limit, idle)| idle >= limit) {
                    Some((limit, _)) => format!("idle for maxIdleTimeMS, {}", span(limit)),
                    None => "idle: older than the maximum lifetime, or surplus".to_owned(),
                }
            }
            (reason, _) => reason.as_str().to_owned(),
        }
    }

    fn input(&mut self, view: &View<'_>, now: u64) {
        let input = &view.step.input;
        let told = || text::input(input);
        match input {
            Input::CheckedIn { id, health, .. } => {
                if let Health::Errored(_) = health {
                    self.note(id.number(), &told(), "CheckedIn errored");
                    self.mark(view, MarkKind::Lost, id.number(), &told());
                } else if let Health::PendingResponse { .. } = health {
                    self.note(id.number(), &told(), "CheckedIn pending a response");
                }
                self.rest(id.number(), now);
            }
            Input::DrainSucceeded { id, .. } | Input::EstablishSucceeded { id, .. } => {
                self.rest(id.number(), now);
            }
            Input::EstablishFailed { id, .. } => {
                self.close(id.number(), now);
                self.mark(view, MarkKind::EstablishFailed, id.number(), &told());
                self.back_off(view, id.number());
            }
            Input::DrainFailed { id, .. } => {
                self.close(id.number(), now);
                self.mark(view, MarkKind::Lost, id.number(), &told());
            }
            Input::IdleClosedByPeer { id, .. } => {
                self.mark(view, MarkKind::Lost, id.number(), &told());
            }
            Input::Ready => self.ready(view),
            Input::Close => self.mark(view, MarkKind::Close, 0, &told()),
            Input::RetireConnections => self.mark(view, MarkKind::Retired, 0, &told()),
            Input::ReleaseIdle | Input::SetOptions { .. } => {
                self.mark(view, MarkKind::Other, 0, &told());
            }
            // A clear is marked if it had an effect.
            Input::Clear { .. }
            | Input::CheckOutRequested { .. }
            | Input::CheckOutCancelled { .. }
            | Input::Repurposed { .. }
            | Input::Handshaken { .. }
            | Input::DrainProgress { .. }
            | Input::ResetAfterFork
            | Input::Timer => {}
        }
    }

    fn action(&mut self, view: &View<'_>, action: &Action<Traced>, now: u64) {
        match action {
            Action::StartEstablish { id, .. } => {
                let activity = Some((UseKind::Pending, 0, now));
                let open =
                    Open { slot: id.slot(), start: now, why: 0, note: 0, place: 0, activity };
                self.open.insert(id.number(), open);
            }
            Action::Deliver { waiter, outcome: Ok((id, ())) } => {
                self.rest(id.number(), now);
                let place = self.place(place_of(*waiter, view));
                if let Some(open) = self.open.get_mut(&id.number()) {
                    open.activity = Some((UseKind::InUse, waiter.0, now));
                    open.place = place;
                }
            }
            Action::CloseSocket { id, .. }
            | Action::AbortEstablish { id }
            | Action::AbortDrain { id } => self.close(id.number(), now),
            Action::StartDrain { id, .. } => {
                if let Some(open) = self.open.get_mut(&id.number()) {
                    open.activity = Some((UseKind::Draining, 0, now));
                }
            }
            Action::Interrupt { id } => {
                self.note(id.number(), &format!("interrupted: {}", self.stale), "interrupted");
            }
            Action::ReportLeak { held, id } => {
                let told = format!("reported: held for {}", span(*held));
                self.note(id.number(), &told, "reported");
                self.mark(view, MarkKind::Leak, id.number(), &told);
            }
            Action::Deliver { outcome: Err(_), .. }
            | Action::ReportUnanswered { .. }
            | Action::EmitEvent(_) => {}
        }
    }

    /// The requests that ended in this step. Those that were served at once are not drawn, because nothing
    /// would be visible.
    fn waits(&mut self, view: &View<'_>) {
        for wait in self.analysis.ended().to_vec() {
            if let Outcome::Failed(failure) = &wait.outcome {
                let (word, way) = (failure.word(), wait.in_the_way());
                let told = format!("check-out failed: {word} ({way})");
                let brief = format!("check-out failed: {word}");
                let is_shed = matches!(failure, Failure::Shed);
                let kind = if is_shed { MarkKind::Shed } else { MarkKind::CheckOutFailed };
                self.mark_brief(view, kind, wait.waiter.0, (&told, &brief));
            }
            self.wait(&wait);
        }
    }

    pub(super) fn wait(&mut self, wait: &explain::Wait) {
        let way = wait.in_the_way();
        let brief = way.split(':').next().unwrap_or_default();
        let (outcome, connection) = match &wait.outcome {
            Outcome::Served(number) => (0, *number),
            Outcome::Failed(failure) => (outcome_of(failure), 0),
            Outcome::Waiting => (STILL_WAITING, 0),
        };
        let place = self.place(wait.place.as_deref());
        self.picture.waits.push(Wait {
            row: 0,
            id: wait.waiter.0,
            connection,
            outcome,
            start: wait.asked.as_nanos(),
            end: wait.ended.as_nanos(),
            limit: wait.limit.map_or(0, |limit| u64::try_from(limit.as_nanos()).unwrap_or(0)),
            ahead: wait.ahead.map(|ahead| u32::try_from(ahead).unwrap_or(u32::MAX)),
            why: self.texts.index(&way, brief),
            place,
        });
    }

    fn place(&mut self, place: Option<&str>) -> u32 {
        place.map_or(0, |place| self.texts.index(place, "one of many places"))
    }

    /// Says how the use of a connection goes or ends.
    fn note(&mut self, number: u64, told: &str, brief: &str) {
        let Some(open) = self.open.get_mut(&number) else { return };
        let earlier = self.texts.get(open.note);
        let all = if earlier.is_empty() { told.to_owned() } else { format!("{earlier}; {told}") };
        open.note = self.texts.index(&all, brief);
    }

    /// Ends the activity of a connection.
    fn rest(&mut self, number: u64, now: u64) {
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
            });
        }
    }

    fn close(&mut self, number: u64, now: u64) {
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

    /// Adds the state of a pool.
    fn take_over(&mut self, pool: &PoolState<Traced>) {
        for connection in pool.connections() {
            let since = connection.since.as_nanos();
            let activity = match connection.state {
                ConnectionState::Pending { .. } => Some((UseKind::Pending, 0, since)),
                ConnectionState::Available | ConnectionState::PendingResponse { .. } => None,
                ConnectionState::Draining { .. } => Some((UseKind::Draining, 0, since)),
                ConnectionState::InUse { .. } => Some((UseKind::InUse, 0, since)),
            };
            let (slot, start) = (connection.id.slot(), connection.created.as_nanos());
            let open = Open { slot, start, why: 0, note: 0, place: 0, activity };
            self.open.insert(connection.id.number(), open);
        }
        self.counts(&pool.snapshot(), pool.now().as_nanos());
    }

    fn counts(&mut self, snapshot: &Snapshot, at: u64) {
        let waiting = u32::try_from(snapshot.waiting).unwrap_or(u32::MAX);
        let &Snapshot { total, in_use, pending, .. } = snapshot;
        let point = Point { at, total, in_use, pending, waiting };
        let differs = |last: &Point| Point { at, ..*last } != point;
        if self.picture.points.last().is_none_or(differs) {
            // Of several at the same time, only the last is visible.
            if self.picture.points.last().is_some_and(|last| last.at == at) {
                self.picture.points.pop();
            }
            self.picture.points.push(point);
        }
        let (min, connecting) = (snapshot.min_pool_size, snapshot.max_connecting);
        let limits = Limits { at, max: snapshot.max_pool_size.unwrap_or(0), min, connecting };
        let last = self.picture.limits.last();
        if last.is_none_or(|last| Limits { at, ..*last } != limits) {
            self.picture.limits.push(limits);
        }
    }

    /// Many clients mark a pool ready after each check of the server: what changes nothing is only counted.
    fn ready(&mut self, view: &View<'_>) {
        let is_change = |action: &Action<Traced>| {
            matches!(action, Action::EmitEvent(Event::ConnectionPoolReady))
        };
        match self.ready.last_mut() {
            Some((_, again)) if !view.actions.iter().any(is_change) => *again += 1,
            Some(_) | None => {
                self.ready.push((self.picture.marks.len(), 0));
                self.mark(view, MarkKind::Ready, 0, "Ready");
            }
        }
    }

    /// Marks that a back-off begins; failures during one belong to it.
    fn back_off(&mut self, view: &View<'_>, number: u64) {
        let pacing = view.pool.checkpoint().pacing;
        let until = pacing.not_before.filter(|_| pacing.overloads > 0);
        let Some(until) = until.filter(|_| self.backs_off_until != until) else { return };
        self.backs_off_until = Some(until);
        let (times, lasts) = (pacing.overloads, until.saturating_since(view.pool.now()));
        let overloads = counted(times.into(), "overload", "overloads in a row");
        let told = format!("the pool backs off for {}: {overloads}", span(lasts));
        self.mark(view, MarkKind::BackOff, number, &told);
    }

    fn mark(&mut self, view: &View<'_>, kind: MarkKind, about: u64, text: &str) {
        let brief = view.step.input.name();
        self.mark_brief(view, kind, about, (text, brief));
    }

    fn mark_brief(
        &mut self,
        view: &View<'_>,
        kind: MarkKind,
        about: u64,
        (text, brief): (&str, &str),
    ) {
        let text = self.texts.index(text, brief);
        let (at, step) = (view.pool.now().as_nanos(), view.step.number);
        self.picture.marks.push(Mark { at, kind, step, text, about });
    }
}

/// Where the request that is served in this step was called, if the trace says so.
fn place_of<'a>(waiter: WaiterId, view: &View<'a>) -> Option<&'a str> {
    let is_its = matches!(&view.step.input, Input::CheckOutRequested { id, .. } if *id == waiter);
    let place = if is_its { view.step.place.as_ref() } else { view.holders.places.get(&waiter) };
    place.map(|place| &**place)
}

const fn outcome_of(failure: &Failure) -> u8 {
    match failure {
        Failure::TimedOut => 1,
        Failure::Paused(_) | Failure::Cleared(_) => 2,
        // The events of a pool do not always say why.
        Failure::NotEstablished(_) | Failure::Untold => 3,
        Failure::Closed => 4,
        Failure::Cancelled => 5,
        Failure::QueueFull => 7,
        Failure::Shed => 8,
    }
}

const STILL_WAITING: u8 = 6;
const HELD: &str = "not checked in by the end of the trace";
const LEAKED: &str = "looks leaked";
/// How many of the longest waits the summary lists.
pub(super) const SLOWEST: usize = 5;
/// How many clears are described.
const CLEARS_MAX: usize = 500;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use cenote_core::pool::PoolOptions;
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
