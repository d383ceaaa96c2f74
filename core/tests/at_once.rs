//! The entry points for what is served at once decide as `handle` does.
//!
//! How: two pools live the same life of random steps. One gets everything through `handle`, the other
//! through the entry points where they apply. Their actions, their states and the deadlines that a
//! shell would keep are compared after each step.

use std::time::Duration;

use cenote_core::pool::{
    Action, ActionSink, ConnId, ConnectionState, Health, Input, Instant, PoolOptions, PoolState,
    PoolTypes, Purpose, ReuseOrder, ServiceId, WaiterId, WithoutEvents,
};
use proptest::prelude::*;
use proptest::sample::Index;

#[derive(Debug, PartialEq)]
enum Plain {}

impl PoolTypes for Plain {
    type Conn = u64;
    type Waiter = u64;
    type Cause = &'static str;
}

#[derive(Clone, Debug)]
enum Step {
    CheckOut { deadline: Option<u64>, purpose: Purpose },
    CheckIn(Index),
    CheckInBroken(Index),
    CheckInPendingResponse(Index),
    Drained(Index),
    NotDrained(Index),
    Handshaken { connection: Index, service: u8 },
    Cancel(Index),
    Established(Index),
    NotEstablished { connection: Index, overloaded: bool },
    ClosedByPeer(Index),
    Clear { interrupt: bool, service: u8 },
    Ready,
    Retire,
    Release,
    Timer,
    Shrink,
    Later(u64),
    Earlier,
    Foreign,
}

fn step() -> impl Strategy<Value = Step> {
    let purpose = prop_oneof![Just(Purpose::Other), Just(Purpose::Cursor)];
    let deadline = prop::option::weighted(0.2, 0_u64..20);
    prop_oneof![
        12 => (deadline, purpose).prop_map(|(deadline, purpose)| Step::CheckOut { deadline, purpose }),
        10 => any::<Index>().prop_map(Step::CheckIn),
        1 => any::<Index>().prop_map(Step::CheckInBroken),
        2 => any::<Index>().prop_map(Step::CheckInPendingResponse),
        1 => any::<Index>().prop_map(Step::Drained),
        1 => any::<Index>().prop_map(Step::NotDrained),
        6 => (any::<Index>(), 0_u8..2)
            .prop_map(|(connection, service)| Step::Handshaken { connection, service }),
        1 => any::<Index>().prop_map(Step::Cancel),
        6 => any::<Index>().prop_map(Step::Established),
        1 => (any::<Index>(), any::<bool>())
            .prop_map(|(connection, overloaded)| Step::NotEstablished { connection, overloaded }),
        1 => any::<Index>().prop_map(Step::ClosedByPeer),
        1 => (any::<bool>(), 0_u8..2)
            .prop_map(|(interrupt, service)| Step::Clear { interrupt, service }),
        2 => Just(Step::Ready),
        1 => Just(Step::Retire),
        1 => Just(Step::Release),
        2 => Just(Step::Timer),
        1 => Just(Step::Shrink),
        4 => (0_u64..30).prop_map(Step::Later),
        1 => Just(Step::Earlier),
        1 => Just(Step::Foreign),
    ]
}

fn options() -> impl Strategy<Value = PoolOptions> {
    let limit = || prop::option::of((1_u64..40).prop_map(Duration::from_nanos));
    let sizes = (1_u32..5, 0_u32..2, prop::option::of(0_u32..4));
    let limits = (limit(), limit(), limit(), limit(), limit());
    let kinds = (any::<bool>(), any::<bool>(), any::<bool>());
    let policies = (limit(), any::<bool>(), any::<bool>());
    (sizes, limits, kinds, policies).prop_map(
        |((max, min, queue), (idle, wait, life, held, codel), kinds, policies)| {
            let (backoff, adapts, predicts) = policies;
            let (is_oldest, waits_for_replies, is_balanced) = kinds;
            let mut options =
                PoolOptions::default().with_max_pool_size(max).with_min_pool_size(min);
            options.max_idle_time = idle;
            options.wait_queue_timeout = wait;
            options.max_lifetime = life;
            options.leak_detection_threshold = held;
            options.max_wait_queue_size = queue;
            options.codel_target = codel;
            options.codel_interval = codel;
            options.overload_backoff = backoff;
            options.adaptive_connecting = Some(adapts);
            options.predictive_min_pool_size = Some(predicts);
            options.reuse_order = is_oldest.then_some(ReuseOrder::LeastRecentlyUsed);
            options.experimental_pending_response = Some(waits_for_replies);
            options.load_balanced = Some(is_balanced);
            options
        },
    )
}

/// A pool, and what a shell keeps beside it.
struct Shell {
    pool: PoolState<Plain>,
    armed: Option<Instant>,
    wants_events: bool,
    /// How many inputs were not fed through `handle`.
    at_once: u32,
}

type Actions = Vec<Action<Plain>>;

struct Collector {
    actions: Actions,
    wants_events: bool,
}

impl ActionSink<Plain> for Collector {
    fn act(&mut self, action: Action<Plain>) {
        self.actions.push(action);
    }

    fn wants_events(&self) -> bool {
        self.wants_events
    }
}

impl Shell {
    fn new(options: PoolOptions) -> Self {
        let mut out = Actions::new();
        let pool = PoolState::new(Instant::ORIGIN, options, &mut WithoutEvents(&mut out));
        let pool = pool.expect("valid options");
        Self { pool, armed: None, wants_events: true, at_once: 0 }
    }

    fn handle(&mut self, now: Instant, input: Input<Plain>) -> Result<Actions, String> {
        let mut out = self.collector();
        let handled = self.pool.handle(now, input, &mut out);
        handled.map(|()| out.actions).map_err(|misuse| misuse.reason.to_string())
    }

    fn collector(&self) -> Collector {
        Collector { actions: Actions::new(), wants_events: self.wants_events }
    }

    /// The same, with the entry points first.
    fn handle_at_once(&mut self, now: Instant, mut input: Input<Plain>) -> Result<Actions, String> {
        if let Input::CheckOutRequested { id, waiter, purpose, .. } = input {
            let mut out = self.collector();
            if let Some(delivered) = self.pool.check_out_at_once(now, id, purpose, &mut out) {
                self.at_once += 1;
                self.arm(PoolState::keeps_deadline_at_once);
                out.act(Action::Deliver { waiter, outcome: Ok(delivered) });
                return Ok(out.actions);
            }
        }
        if let Input::CheckOutRequested { id, waiter, deadline, purpose } = input {
            let mut out = self.collector();
            match self.pool.enqueue_at_once(now, id, waiter, deadline, purpose, &mut out) {
                Ok(limit) => {
                    self.at_once += 1;
                    self.arm_at(limit);
                    return Ok(out.actions);
                }
                Err(same) => assert_eq!(same, waiter, "it comes back"),
            }
        }
        if let Input::CheckedIn { id, ref mut conn, health: Health::Healthy } = input {
            let mut out = self.collector();
            match self.pool.check_in_at_once(now, id, *conn, &mut out) {
                Ok(()) => {
                    self.at_once += 1;
                    self.arm(PoolState::keeps_deadline_at_once);
                    return Ok(out.actions);
                }
                Err(same) => *conn = same,
            }
            match self.pool.hand_over_at_once(now, id, *conn, &mut out) {
                Ok((waiter, conn)) => {
                    self.at_once += 1;
                    self.arm(PoolState::keeps_deadline_at_once);
                    out.act(Action::Deliver { waiter, outcome: Ok((id, conn)) });
                    return Ok(out.actions);
                }
                Err(same) => *conn = same,
            }
        }
        let is_use = matches!(input, Input::CheckOutRequested { .. } | Input::CheckedIn { .. });
        if matches!(input, Input::Timer) {
            self.armed = None;
        }
        let handled = self.handle(now, input);
        self.arm(|pool, armed| is_use && pool.keeps_deadline(armed));
        handled
    }

    /// Sets the timer to the next deadline, unless the machine says that it may be left so.
    fn arm(&mut self, keeps: impl Fn(&PoolState<Plain>, Instant) -> bool) {
        if !self.armed.is_some_and(|armed| keeps(&self.pool, armed)) {
            self.arm_at(self.pool.next_deadline().map(|deadline| deadline.at));
        }
    }

    fn arm_at(&mut self, next: Option<Instant>) {
        self.armed = match (self.armed, next) {
            (Some(armed), Some(next)) => Some(armed.min(next)),
            (armed, next) => armed.or(next),
        };
    }

    fn ids(&self, is: impl Fn(&ConnectionState) -> bool) -> Vec<ConnId> {
        let connections = self.pool.connections().filter(|connection| is(&connection.state));
        connections.map(|connection| connection.id).collect()
    }
}

fn pick(ids: &[ConnId], index: &Index) -> Option<ConnId> {
    (!ids.is_empty()).then(|| ids[index.index(ids.len())])
}

/// The input of a step, if the pool has what it is about.
fn input(step: &Step, shell: &Shell, now: Instant, requests: &mut u64) -> Option<Input<Plain>> {
    let in_use = || shell.ids(|state| matches!(state, ConnectionState::InUse { .. }));
    let pending = || shell.ids(|state| matches!(state, ConnectionState::Pending { .. }));
    let draining = || shell.ids(|state| matches!(state, ConnectionState::Draining { .. }));
    let is_balanced = shell.pool.options().load_balanced == Some(true);
    let available = || shell.ids(|state| matches!(state, ConnectionState::Available));
    let checked_in = |id: ConnId, health| Input::CheckedIn { id, conn: id.number(), health };
    Some(match step {
        Step::CheckOut { deadline, purpose } => {
            *requests += 1;
            let deadline = deadline.map(|nanos| now + Duration::from_nanos(nanos));
            let id = WaiterId(*requests);
            Input::CheckOutRequested { id, waiter: *requests, deadline, purpose: *purpose }
        }
        Step::CheckIn(index) => checked_in(pick(&in_use(), index)?, Health::Healthy),
        Step::CheckInBroken(index) => {
            checked_in(pick(&in_use(), index)?, Health::Errored("broken"))
        }
        Step::CheckInPendingResponse(index) => {
            let health = Health::PendingResponse { request_id: 1, cause: "late" };
            checked_in(pick(&in_use(), index)?, health)
        }
        Step::Drained(index) => {
            let id = pick(&draining(), index)?;
            Input::DrainSucceeded { id, conn: id.number() }
        }
        Step::NotDrained(index) => {
            Input::DrainFailed { id: pick(&draining(), index)?, cause: "silent" }
        }
        Step::Handshaken { connection, service } => Input::Handshaken {
            id: pick(&pending(), connection)?,
            service: is_balanced.then_some(ServiceId([*service; 12])),
            clears_at_hello: None,
        },
        Step::Cancel(index) => {
            Input::CheckOutCancelled { id: WaiterId(index.index(*requests as usize + 1) as u64) }
        }
        Step::Established(index) => {
            let id = pick(&pending(), index)?;
            Input::EstablishSucceeded { id, conn: id.number() }
        }
        Step::NotEstablished { connection, overloaded } => Input::EstablishFailed {
            id: pick(&pending(), connection)?,
            cause: "refused",
            overloaded: *overloaded,
        },
        Step::ClosedByPeer(index) => {
            Input::IdleClosedByPeer { id: pick(&available(), index)?, cause: "closed" }
        }
        Step::Clear { interrupt, service } => Input::Clear {
            cause: "cleared",
            interrupt: *interrupt && !is_balanced,
            service: is_balanced.then_some(ServiceId([*service; 12])),
        },
        Step::Ready => Input::Ready,
        Step::Retire => Input::RetireConnections,
        Step::Release => Input::ReleaseIdle,
        Step::Timer => Input::Timer,
        Step::Shrink => {
            let options = shell.pool.options().clone().with_max_pool_size(1);
            Input::SetOptions { options: Box::new(options) }
        }
        // A connection that never was, and a waiter that was before.
        Step::Foreign if *requests % 2 == 0 => {
            checked_in(ConnId::from_parts(1_000, 0), Health::Healthy)
        }
        Step::Foreign => Input::CheckOutRequested {
            id: WaiterId(*requests),
            waiter: 0,
            deadline: None,
            purpose: Purpose::Other,
        },
        Step::Later(_) | Step::Earlier => return None,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn they_decide_as_handle_does(
        options in options(),
        wants_events in any::<bool>(),
        steps in prop::collection::vec(step(), 1..120),
    ) {
        let (mut one, mut other) = (Shell::new(options.clone()), Shell::new(options));
        (one.wants_events, other.wants_events) = (wants_events, wants_events);
        let (mut now, mut requests) = (Instant::ORIGIN, 0);
        for step in &steps {
            if let Step::Later(nanos) = step {
                now = now + Duration::from_nanos(*nanos);
            } else if matches!(step, Step::Earlier) {
                now = Instant::ORIGIN;
            }
            let mut of_other = requests;
            let Some(fed) = input(step, &one, now, &mut requests) else { continue };
            let again = input(step, &other, now, &mut of_other).expect("the same pool");
            prop_assert_eq!(one.handle(now, fed), other.handle_at_once(now, again));
            prop_assert_eq!(one.pool.fingerprint(), other.pool.fingerprint());
            other.pool.check_invariants();
            if let Some(deadline) = other.pool.next_deadline() {
                prop_assert!(other.armed.is_some_and(|armed| armed <= deadline.at), "{step:?}");
            }
        }
    }
}

/// Without limits on the time that a connection is idle or in use, neither asks for the time.
#[test]
fn limits_of_waiting_need_no_time() {
    let second = Duration::from_secs(1);
    let needs = |options| Shell::new(options).pool.needs_now_at_once();
    assert!(!needs(PoolOptions::default().with_wait_queue_timeout(second).with_min_pool_size(1)));
    assert!(needs(PoolOptions::default().with_max_idle_time(second)));
    assert!(needs(PoolOptions::default().with_leak_detection_threshold(second)));
}

/// The usual life of a connection is served at once, so that the property above compares something.
#[test]
fn a_pair_of_an_available_connection_is_served_at_once() {
    let mut shell = Shell::new(PoolOptions::default());
    let request = |number| Input::CheckOutRequested {
        id: WaiterId(number),
        waiter: number,
        deadline: None,
        purpose: Purpose::Other,
    };
    let now = Instant::ORIGIN;
    let id = ConnId::from_parts(1, 0);
    let back = || Input::CheckedIn { id, conn: 1, health: Health::Healthy };
    shell.handle_at_once(now, Input::Ready).expect("legal");
    shell.handle_at_once(now, request(1)).expect("legal");
    assert_eq!(shell.at_once, 0, "a connection is made for the first request");
    shell.handle_at_once(now, Input::EstablishSucceeded { id, conn: 1 }).expect("legal");
    shell.handle_at_once(now, back()).expect("legal");
    // With two events.
    assert_eq!(shell.handle_at_once(now, request(2)).expect("legal").len(), 3);
    shell.handle_at_once(now, back()).expect("legal");
    assert_eq!(shell.at_once, 3);
}

/// And so is the usual life of a full pool.
#[test]
fn a_request_that_waits_is_served_by_the_next_check_in() {
    let mut shell = Shell::new(PoolOptions::default().with_max_pool_size(1));
    let now = Instant::ORIGIN;
    let id = ConnId::from_parts(1, 0);
    let request = |number| Input::CheckOutRequested {
        id: WaiterId(number),
        waiter: number,
        deadline: None,
        purpose: Purpose::Other,
    };
    shell.handle_at_once(now, Input::Ready).expect("legal");
    shell.handle_at_once(now, request(1)).expect("legal");
    shell.handle_at_once(now, Input::EstablishSucceeded { id, conn: 1 }).expect("legal");
    shell.handle_at_once(now, request(2)).expect("legal");
    let back = Input::CheckedIn { id, conn: 1, health: Health::Healthy };
    let delivered = shell.handle_at_once(now, back).expect("legal");
    assert_eq!(delivered.last(), Some(&Action::Deliver { waiter: 2, outcome: Ok((id, 1)) }));
    assert_eq!(shell.at_once, 2);
}
