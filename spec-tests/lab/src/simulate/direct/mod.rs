//! Worlds without a network: the server, the monitor and connections are timers.

mod plan;
mod server;
mod trouble;

use std::time::Duration;

use cenote_core::pool::{Action, ConnId, Event, Health, Instant, ServiceId};
use cenote_core::trace::Cause;

pub use self::plan::{Parameters, Plan};
pub use self::trouble::Trouble;
use super::accounting::{Socket, SocketState};
use super::coverage::Situation;
use super::latency::Latency;
use super::misuse::misuse;
use super::world::{self, FAST, Transport};
use crate::lockstep::{self, Tagged};
use cenote_replay::random::SplitMix;

/// The state of the server, and of callers that are particular to these worlds.
pub(super) struct Direct {
    trouble: Option<Trouble>,
    /// The load balancer's services have consecutive numbers; this is the first one.
    first_service: u8,
    /// Callers that wait for the pool to be ready.
    waiting_for_ready: Vec<u32>,
    /// Draws what concerns late replies, so that worlds without them are as they were.
    late: SplitMix,
    /// Whether connections were released the last time, and not retired.
    releases: bool,
}

/// An event that is particular to these worlds. Connections are identified by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Due {
    /// The server replies to a connection's hello.
    Greeted { connection: u64 },
    /// A connection is established, or fails.
    Opened { connection: u64 },
    /// The time limit for establishing a connection is over.
    OpeningTimesOut { connection: u64 },
    /// The monitor checks the server.
    Heartbeat,
    /// The peer closes an idle connection.
    PeerCloses { connection: u64 },
    /// A late reply comes, or some of it.
    Drained { connection: u64 },
    /// Credentials change.
    Retire,
}

/// Uses do not end later than this in order to coincide with a deadline of the pool.
const COINCIDENCE: Duration = Duration::from_millis(500);

/// Distinguishes the random numbers of late replies from all others.
const LATE: u64 = 0x1a7e_4e91;

pub(super) type World<'a> = world::World<'a, Direct>;

impl Transport for Direct {
    type Types = Tagged;
    type Parameters = Parameters;
    type Due = Due;
    type Timer = std::convert::Infallible;

    const SALT: u64 = 0x5eed;
    /// Longer than any pause of a plan.
    const RECOVERY: Duration = Duration::from_secs(30);
    const STUCK: u32 = 1_000;
    const OPENING: u32 = 1;
    const BURSTS: u64 = 1;

    fn new(plan: &Plan) -> Result<Self, String> {
        let late = SplitMix(plan.seed ^ LATE);
        let waiting_for_ready = Vec::new();
        Ok(Self { trouble: None, first_service: 0, waiting_for_ready, late, releases: false })
    }

    fn has_troubles(parameters: &Parameters) -> bool {
        !parameters.troubles.is_empty()
    }

    fn is_balanced(parameters: &Parameters) -> bool {
        parameters.services != 0
    }

    fn patience(plan: &Plan) -> ([Latency; 2], u32) {
        ([plan.transport.open, plan.work], 1)
    }

    /// Causes are told apart by their numbers.
    fn traced(cause: u64) -> Cause {
        Cause { text: Some(format!("cause {cause}").into()), ..Cause::default() }
    }

    fn misuse_unit(plan: &Plan) -> (Latency, Duration) {
        (plan.work, Duration::ZERO)
    }

    fn inputs(world: &World<'_>) -> u64 {
        world.subject.fed
    }

    fn begin(world: &mut World<'_>) -> Result<(), String> {
        world.plan_in(Duration::ZERO, Due::Heartbeat);
        if let Some(every) = world.plan.transport.retire_every {
            world.plan_in(every, Due::Retire);
        }
        Ok(())
    }

    fn timer(_: &mut World<'_>, timer: Self::Timer) -> Result<(), String> {
        match timer {}
    }

    fn is_deadline(due: &Due) -> bool {
        match due {
            Due::OpeningTimesOut { .. } => true,
            Due::Greeted { .. }
            | Due::Opened { .. }
            | Due::Heartbeat
            | Due::PeerCloses { .. }
            | Due::Drained { .. }
            | Due::Retire => false,
        }
    }

    fn happen(world: &mut World<'_>, due: Due) -> Result<(), String> {
        match due {
            Due::Greeted { connection } => world.greeted(connection),
            Due::Opened { connection } => world.opened(connection),
            Due::OpeningTimesOut { connection } => world.opening_times_out(connection),
            Due::Heartbeat => world.heartbeat(),
            Due::PeerCloses { connection } => world.peer_closes(connection),
            Due::Drained { connection } => world.drained(connection),
            Due::Retire => world.retire(),
        }
    }

    /// Most callers wait for the pool to be ready, as clients do that select a server first.
    fn may_ask(world: &mut World<'_>, caller: u32) -> Result<bool, String> {
        if world.subject.is_ready() {
            return Ok(true);
        }
        let waits = if world.is_recovering {
            !world.is_closed
        } else {
            world.plan.profile.waits_for_ready && !world.random.one_in(16)
        };
        if waits {
            world.transport.waiting_for_ready.push(caller);
        }
        Ok(!waits)
    }

    /// The use ends by itself, by the server's trouble, or never.
    fn use_connection(world: &mut World<'_>, connection: u64) {
        let Some(socket) = world.accounting.socket(connection) else { return };
        let use_number = socket.use_number;
        let due = world::Due::Finish { connection, use_number };
        if world.is_recovering {
            return world.plan_in(FAST, due);
        }
        if world.random.one_in(world.plan.profile.leaks) {
            world.coverage.count(Situation::Leaks);
            return;
        }
        let work = world.plan.work.draw(&mut world.random);
        let after = match world.transport.trouble {
            Some(Trouble::Stalls) => world.plan.connect_timeout,
            Some(Trouble::IsSlow) => work * 10,
            _ => work,
        };
        let after = world.until_due().unwrap_or(after);
        world.plan_in(after, due);
        if world.random.one_in(world.plan.profile.pins) {
            world.plan_in(Duration::ZERO, world::Due::Repurpose { connection, use_number });
        }
    }

    fn health(world: &mut World<'_>, socket: &Socket) -> Result<Health<u64>, String> {
        let breaks = !world.is_recovering && world.random.one_in(world.plan.profile.breaks);
        let times_out = world.transport.trouble == Some(Trouble::Stalls);
        for (happened, what) in [
            (breaks, Situation::ReturnsBroken),
            (socket.is_dead, Situation::BrokenInUse),
            (times_out, Situation::SilentInUse),
        ] {
            if happened {
                world.coverage.count(what);
            }
        }
        let gives_up = world.plan.options.experimental_pending_response == Some(true)
            && !socket.is_dead
            && !breaks
            && (times_out || (!world.is_recovering && world.transport.late.one_in(3)));
        if gives_up {
            world.coverage.count(Situation::LateReply);
            let request_id = world.transport.late.number() as i32;
            return Ok(Health::PendingResponse { request_id, cause: world.now.as_nanos() });
        }
        let is_broken = socket.is_dead || breaks || times_out;
        let health =
            if is_broken { Health::Errored(world.now.as_nanos()) } else { Health::Healthy };
        if world.blames_server(socket, is_broken) && !world.subject.pool().is_stale(socket.id) {
            world.clear(service_of(socket), false)?;
        }
        Ok(health)
    }

    fn interrupt(world: &mut World<'_>, connection: u64) {
        if let Some(socket) = world.accounting.socket_mut(connection) {
            socket.is_dead = true;
        }
    }

    fn before_action(world: &mut World<'_>, action: &Action<Tagged>) {
        if let Action::EmitEvent(Event::ConnectionPoolReady) = action {
            for caller in std::mem::take(&mut world.transport.waiting_for_ready) {
                world.plan_in(Duration::ZERO, world::Due::Ask { caller });
            }
        }
    }

    /// Schedules when the connection will be established, or when that fails.
    fn open(world: &mut World<'_>, id: ConnId, deadline: Option<Instant>) {
        let connection = id.number();
        let takes = world.time(world.plan.transport.open);
        let hello = takes / 2;
        let takes = match world.transport.trouble {
            Some(Trouble::Stalls) => Duration::from_secs(3600),
            Some(Trouble::IsSlow) => takes * 10,
            Some(Trouble::Refuses | Trouble::IsOverloaded) => takes / 10,
            _ => takes,
        };
        world.plan_in(hello.min(takes), Due::Greeted { connection });
        world.plan_in(takes, Due::Opened { connection });
        let allowed = deadline.map(|deadline| deadline.saturating_since(world.now));
        let allowed = allowed.unwrap_or(Duration::MAX).min(world.plan.connect_timeout);
        if allowed < takes {
            world.plan_in(allowed, Due::OpeningTimesOut { connection });
        }
    }

    fn abort(_: &mut World<'_>, _: ConnId) -> Result<(), String> {
        Ok(())
    }

    fn drain(world: &mut World<'_>, id: ConnId) -> Result<(), String> {
        world.plan_drain(id.number());
        Ok(())
    }

    fn finish_drain(world: &mut World<'_>, connection: u64) {
        world.plan_in(FAST, Due::Drained { connection });
    }

    fn change_trouble(world: &mut World<'_>) {
        world.transport.trouble = match world.transport.trouble {
            Some(_) => None,
            None => world.random.pick(&world.plan.transport.troubles),
        };
        let Some(trouble) = world.transport.trouble else { return };
        world.coverage.count(trouble.situation());
        match trouble {
            Trouble::Resets => world.reset_connections(),
            Trouble::Vanishes => {
                world.accounting.sockets_mut().for_each(|socket| socket.is_dead = true);
            }
            Trouble::ClosesIdle => world.close_idle(),
            Trouble::Refuses
            | Trouble::Stalls
            | Trouble::IsSlow
            | Trouble::TalksNonsense
            | Trouble::RefusesLogins
            | Trouble::IsOverloaded
            | Trouble::StepsDown => {}
        }
    }

    /// Some services disappear, with their connections, and as many others appear.
    fn move_services(world: &mut World<'_>) {
        let services = world.plan.transport.services;
        let gone = world.random.between(1, u64::from(services));
        let first = &mut world.transport.first_service;
        *first = first.wrapping_add(u8::try_from(gone).unwrap_or(1));
        let first = *first;
        let is_gone = |service: u8| service.wrapping_sub(first) >= services;
        for socket in world.accounting.sockets_mut() {
            socket.is_dead |= socket.service.is_some_and(is_gone);
        }
    }

    fn misuse(world: &mut World<'_>) -> Option<Result<(), String>> {
        let at = world.look_at_clock();
        let is_balanced = world.is_balanced();
        let input = misuse(&world.accounting, is_balanced, &mut world.random, || 0)?;
        Some(world.subject.feed_misuse(at, input))
    }

    fn begin_recovery(world: &mut World<'_>) -> Result<(), String> {
        world.is_recovering = true;
        world.transport.trouble = None;
        world.finish_everything();
        Ok(())
    }

    fn before_close(world: &mut World<'_>) -> Result<(), String> {
        world.is_recovering = true;
        Ok(())
    }

    fn finish_opening(world: &mut World<'_>, connection: u64) {
        world.plan_in(FAST, Due::Greeted { connection });
        world.plan_in(FAST, Due::Opened { connection });
    }
}

impl World<'_> {
    /// The time until the pool's next deadline, if this use is to end then.
    fn until_due(&mut self) -> Option<Duration> {
        let due = self.subject.pool().next_deadline()?.at;
        let is_soon = due > self.now && due < self.now + COINCIDENCE;
        if !is_soon || !self.random.one_in(self.plan.transport.coincides) {
            return None;
        }
        self.coverage.count(Situation::Coincidence);
        Some(due.saturating_since(self.now))
    }

    /// A network error or a state change of the server clears the pool; a timeout does not.
    fn blames_server(&self, socket: &Socket, is_broken: bool) -> bool {
        match self.transport.trouble {
            _ if self.is_recovering => false,
            Some(Trouble::StepsDown) => true,
            Some(Trouble::Stalls) => false,
            _ => is_broken && socket.is_dead,
        }
    }
}

fn service_of(socket: &Socket) -> Option<ServiceId> {
    socket.service.map(lockstep::service)
}
