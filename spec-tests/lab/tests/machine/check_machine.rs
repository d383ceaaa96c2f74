//! The event checker on random runs of the machine: no finding in the complete stream, and a
//! finding in a stream without one event.

use std::time::Duration;

use cenote_check::{Checker, Limits, Line, Report};
use cenote_core::address::ServerAddress;
use cenote_core::pool::{
    Action, ConnId, Health, Input, Instant, PoolOptions, PoolState, PoolTypes, Purpose, ServiceId,
    WaiterId,
};
use cenote_replay::random::SplitMix;

enum Plain {}

impl PoolTypes for Plain {
    type Conn = ();
    type Waiter = ();
    type Cause = &'static str;
}

const SERVICES: [ServiceId; 2] = [ServiceId([1; 12]), ServiceId([2; 12])];

fn address() -> ServerAddress {
    "a:1".parse().expect("an address")
}

/// A pool, and what a shell knows of it.
struct World {
    pool: PoolState<Plain>,
    options: PoolOptions,
    now: Instant,
    random: SplitMix,
    requests: u64,
    pending: Vec<ConnId>,
    draining: Vec<ConnId>,
    in_use: Vec<ConnId>,
    events: Vec<Line>,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut options = PoolOptions::default()
            .with_max_pool_size((seed % 4) as u32)
            .with_max_connecting(1 + (seed % 3) as u32)
            .with_wait_queue_timeout(Duration::from_millis(20))
            .with_max_idle_time(Duration::from_millis(15));
        options.min_pool_size = (seed % 4 == 2).then_some(1);
        options.load_balanced = Some(seed % 5 == 0);
        options.experimental_pending_response = Some(seed % 2 == 0);
        let (now, mut out) = (Instant::ORIGIN, Vec::new());
        let pool = PoolState::new(now, options.clone(), &mut out).expect("good options");
        let mut world = Self {
            pool,
            options,
            now,
            random: SplitMix(seed),
            requests: 0,
            pending: Vec::new(),
            draining: Vec::new(),
            in_use: Vec::new(),
            events: Vec::new(),
        };
        world.perform(out);
        world
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.random.below(bound)
    }

    fn feed(&mut self, input: Input<Plain>) {
        let mut out = Vec::new();
        self.pool.handle(self.now, input, &mut out).expect("a legal input");
        self.perform(out);
    }

    fn perform(&mut self, actions: Vec<Action<Plain>>) {
        for action in actions {
            match action {
                Action::StartEstablish { id, .. } => self.pending.push(id),
                Action::AbortEstablish { id } => self.pending.retain(|pending| *pending != id),
                Action::StartDrain { id, conn: () } => self.draining.push(id),
                Action::AbortDrain { id } => self.draining.retain(|draining| *draining != id),
                Action::Deliver { outcome: Ok((id, ())), .. } => self.in_use.push(id),
                Action::EmitEvent(event) => {
                    let at = self.now.saturating_since(Instant::ORIGIN);
                    self.events.push(Line::of(&event, &address(), at));
                }
                Action::Deliver { outcome: Err(_), .. }
                | Action::CloseSocket { .. }
                | Action::Interrupt { .. }
                | Action::ReportLeak { .. }
                | Action::ReportUnanswered { .. } => {}
            }
        }
    }

    fn step(&mut self) {
        self.now = self.now + Duration::from_millis(self.below(4));
        let is_balanced = self.options.load_balanced == Some(true);
        let service = is_balanced.then(|| SERVICES[self.below(2) as usize]);
        match self.below(21) {
            18 | 19 => self.answer_drain(),
            20 if self.below(8) == 0 => self.feed(Input::RetireConnections),
            20 if self.below(8) == 0 => self.feed(Input::ReleaseIdle),
            20 => {}
            16 => self.change_options(),
            17 => self.fork(),
            0 | 1 => self.feed(Input::Ready),
            2..=6 => {
                self.requests += 1;
                let id = WaiterId(self.requests);
                let purpose = Purpose::Other;
                self.feed(Input::CheckOutRequested { id, waiter: (), deadline: None, purpose });
            }
            7 => {
                let id = WaiterId(1 + self.below(self.requests.max(1)));
                self.feed(Input::CheckOutCancelled { id });
            }
            8..=10 => {
                let Some(id) = self.one_pending() else { return };
                if is_balanced {
                    self.feed(Input::Handshaken { id, service, clears_at_hello: None });
                }
                self.feed(Input::EstablishSucceeded { id, conn: () });
            }
            11 => {
                let Some(id) = self.one_pending() else { return };
                self.feed(Input::EstablishFailed { id, cause: "refused", overloaded: false });
            }
            12 | 13 => self.check_in(),
            14 => self.feed(Input::Timer),
            _ => {
                let interrupt = !is_balanced && self.below(2) == 0;
                self.feed(Input::Clear { cause: "reset", interrupt, service });
            }
        }
    }

    fn one_pending(&mut self) -> Option<ConnId> {
        let count = self.pending.len() as u64;
        (count > 0).then(|| {
            let index = self.below(count) as usize;
            self.pending.remove(index)
        })
    }

    fn answer_drain(&mut self) {
        let Some(id) = self.draining.pop() else { return };
        match self.below(4) {
            0 => self.feed(Input::DrainFailed { id, cause: "garbage" }),
            1 => {
                self.feed(Input::DrainProgress { id });
                self.draining.insert(0, id);
            }
            _ => self.feed(Input::DrainSucceeded { id, conn: () }),
        }
    }

    /// No event announces it.
    fn change_options(&mut self) {
        self.options.max_pool_size = Some(self.below(4) as u32);
        self.options.max_connecting = Some(1 + self.below(3) as u32);
        self.options.min_pool_size = None;
        let at = self.now.saturating_since(Instant::ORIGIN);
        self.events.push(Line::options_changed(&self.options, &address(), at));
        self.feed(Input::SetOptions { options: Box::new(self.options.clone()) });
    }

    /// The world continues in the child process.
    fn fork(&mut self) {
        if self.below(8) > 0 {
            return;
        }
        let at = self.now.saturating_since(Instant::ORIGIN);
        self.events.push(Line::reset_after_fork(&address(), at));
        self.in_use.clear();
        self.pending.clear();
        self.draining.clear();
        self.feed(Input::ResetAfterFork);
    }

    fn check_in(&mut self) {
        let Some(id) = self.in_use.pop() else { return };
        let request_id = self.below(9) as i32;
        let health = match self.below(6) {
            0 | 1 => Health::Errored("broken"),
            2 => Health::PendingResponse { request_id, cause: "too slow" },
            _ => Health::Healthy,
        };
        self.feed(Input::CheckedIn { id, conn: (), health });
    }

    /// All events until the end of the run.
    fn life(mut self) -> Vec<Line> {
        for _ in 0..300 {
            self.step();
        }
        self.feed(Input::Close);
        while !self.in_use.is_empty() {
            self.check_in();
        }
        self.events
    }
}

fn judge<'a>(lines: impl IntoIterator<Item = &'a Line>) -> Report {
    let mut checker = Checker::new(Limits::default());
    lines.into_iter().for_each(|line| checker.tell(line));
    checker.finish()
}

#[test]
fn the_machine_keeps_every_rule() {
    let mut events = 0;
    for seed in 0..200 {
        let report = judge(&World::new(seed).life());
        assert!(report.is_good(), "seed {seed}: {report}");
        events += report.events;
    }
    assert!(events > 20_000, "{events}");
}

/// No event with a counterpart can be left out without a finding.
#[test]
fn a_missing_event_is_noticed() {
    let mut checked = 0;
    for seed in 1..5 {
        let lines = World::new(seed).life();
        for left_out in 0..lines.len() {
            let text = format!("{:?}", lines[left_out]);
            let counterparts =
                ["PoolCreated", "Created", "Closed {", "Started", "Failed", "Checked", "Pending"];
            if !counterparts.iter().any(|name| text.contains(&format!("told: {name}"))) {
                continue;
            }
            let rest = lines[..left_out].iter().chain(&lines[left_out + 1..]);
            assert!(!judge(rest).is_good(), "seed {seed}, without event {left_out}: {text}");
            checked += 1;
        }
    }
    assert!(checked > 100, "{checked} events were left out");
}

/// No event can be duplicated without a finding, except the clear of a service and lines that are
/// not events.
#[test]
fn a_duplicated_event_is_noticed() {
    for seed in 1..5 {
        let lines = World::new(seed).life();
        for twice in 0..lines.len() {
            let text = format!("{:?}", lines[twice]);
            let may_come_twice =
                ["is_service: true", "told: OptionsChanged", "told: ResetAfterFork"];
            if may_come_twice.iter().any(|what| text.contains(what)) {
                continue;
            }
            let all = lines[..=twice].iter().chain(&lines[twice..]);
            assert!(!judge(all).is_good(), "seed {seed}, twice event {twice}: {text}");
        }
    }
}
