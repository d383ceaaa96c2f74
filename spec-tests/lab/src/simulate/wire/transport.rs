//! The state of a world with a network, and what it does differently.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use cenote_core::connect::{ClientMetadata, Environment, EstablishOptions, ScramCache};
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::monitor;
use cenote_core::pool::{Action, ConnId, Health, Input, Instant};
use cenote_core::trace::Cause;
use cenote_core::uri::ConnectionString;

use super::callers::Use;
use super::client_sockets::{ClientSocket, Owner};
use super::conversation::Client;
use super::error::{NumberedError, WireTypes};
use super::monitor::MonitorState;
use super::network::{LinkId, Network, Side};
use super::observation::{Recording, known_secrets, record};
use super::plan::{Parameters, Plan};
use super::scanner::Scanner;
use super::trouble::Trouble;
use crate::simulate::accounting::Socket;
use crate::simulate::coverage::Situation;
use crate::simulate::latency::Latency;
use crate::simulate::world::{self, Transport};
use cenote_endpoint::{LoadBalanced, Server, Topology};

/// The client, the network and the server of a world.
pub(in crate::simulate) struct Wire {
    pub(super) scanner: Scanner,
    pub(super) recording: Option<Recording>,
    /// `None` behind a load balancer.
    pub(super) monitor: Option<MonitorState>,
    pub(super) server: Server,
    pub(super) listens: bool,
    pub(super) network: Network,
    pub(super) uri: ConnectionString,
    pub(super) options: Arc<EstablishOptions>,
    pub(super) client: Client,
    /// The client's ends of all links.
    pub(super) sockets: BTreeMap<LinkId, ClientSocket>,
    /// The links of the pool's connections.
    pub(super) links: BTreeMap<u64, LinkId>,
    /// Links of the parent process, and how many packets had been sent there before the fork.
    pub(super) parents: Vec<(LinkId, u64)>,
    /// What callers do with connections that are checked out.
    pub(super) uses: BTreeMap<u64, Use>,
    /// The number of errors that were reported to the pool.
    pub(super) errors: u64,
    pub(super) trouble: Option<Trouble>,
    /// A secret that a test leaks into errors.
    #[cfg(test)]
    pub(super) leak: Option<fn(&World<'_>) -> String>,
}

/// An event that is particular to these worlds. Connections are identified by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::simulate) enum Due {
    /// A packet arrives.
    Arrive { link: LinkId, at: Side },
    /// A caller sends a command.
    Speak { connection: u64, use_number: u64 },
    /// The socket timeout of a command is over.
    Silence { connection: u64, use_number: u64, command: u32 },
    /// The time limit for establishing a connection is over.
    OpeningTimesOut { link: LinkId },
    /// The parent process ends.
    ParentEnds,
}

pub(in crate::simulate) enum Timer {
    Server,
    Monitor,
}

pub(super) type World<'a> = world::World<'a, Wire>;

/// The time after which a caller looks again whether the server is selectable.
const SELECTION: Duration = Duration::from_millis(20);

impl Transport for Wire {
    type Types = WireTypes;
    type Parameters = Parameters;
    type Due = Due;
    type Timer = Timer;

    const SALT: u64 = 0x5eed_0003_171e;
    /// Many connections may be dead without having been noticed, and each of them costs a timeout.
    const RECOVERY: Duration = Duration::from_secs(600);
    const STUCK: u32 = 10_000;
    const OPENING: u32 = 20;
    /// A heartbeat interval is long compared with the latency of packets.
    const BURSTS: u64 = 4;

    fn new(plan: &Plan) -> Result<Self, String> {
        let text = |error: &dyn Display| error.to_string();
        let uri = ConnectionString::parse(&plan.uri()).map_err(|error| text(&error))?;
        let client = ClientMetadata::new(uri.app_name.as_deref(), &Environment::default());
        let client = client.map_err(|error| text(&error))?;
        let options = Arc::new(EstablishOptions::new(&uri, &client));
        let address = uri.hosts.first().ok_or("the connection string has no host")?.clone();
        let client = Client {
            address,
            proxy: uri.proxy.clone(),
            scram: ScramCache::default(),
            now: Instant::ORIGIN,
        };
        Ok(Self {
            scanner: known_secrets(plan, &uri, &options),
            recording: Some(record(&plan.options)?),
            monitor: None,
            server: Server::new(plan.settings()).map_err(|error| text(&error))?,
            listens: true,
            network: Network::default(),
            uri,
            options,
            client,
            sockets: BTreeMap::new(),
            links: BTreeMap::new(),
            parents: Vec::new(),
            uses: BTreeMap::new(),
            errors: 0,
            trouble: None,
            #[cfg(test)]
            leak: None,
        })
    }

    fn has_troubles(parameters: &Parameters) -> bool {
        !parameters.troubles.is_empty()
    }

    fn is_balanced(parameters: &Parameters) -> bool {
        matches!(parameters.topology, Topology::LoadBalanced(_))
    }

    fn patience(plan: &Plan) -> ([Latency; 2], u32) {
        ([plan.transport.latency; 2], 8)
    }

    fn traced(error: NumberedError) -> Cause {
        error.traced()
    }

    fn misuse_unit(plan: &Plan) -> (Latency, Duration) {
        (plan.transport.latency, Duration::from_micros(1))
    }

    fn inputs(world: &World<'_>) -> u64 {
        world.transport.scanner.inputs
    }

    /// Behind a load balancer, the application marks the pool ready.
    fn begin(world: &mut World<'_>) -> Result<(), String> {
        if world.is_balanced() { world.feed(Input::Ready) } else { world.begin_monitoring() }
    }

    fn timers(world: &mut World<'_>) -> [Option<(Instant, Timer)>; 2] {
        let server = Self::peer_deadline(world).map(|at| (at, Timer::Server));
        [server, world.monitor_fires_at().map(|at| (at, Timer::Monitor))]
    }

    fn timer(world: &mut World<'_>, timer: Timer) -> Result<(), String> {
        match timer {
            Timer::Server => {
                Self::peer_timer(world);
                Ok(())
            }
            Timer::Monitor => world.monitor_timer(),
        }
    }

    fn is_of_peer(due: &Due) -> bool {
        match due {
            Due::Arrive { at: Side::Far, .. } => true,
            Due::Arrive { at: Side::Near, .. }
            | Due::Speak { .. }
            | Due::Silence { .. }
            | Due::OpeningTimesOut { .. }
            | Due::ParentEnds => false,
        }
    }

    fn is_deadline(due: &Due) -> bool {
        match due {
            Due::Silence { .. } | Due::OpeningTimesOut { .. } => true,
            Due::Arrive { .. } | Due::Speak { .. } | Due::ParentEnds => false,
        }
    }

    fn peer_deadline(world: &World<'_>) -> Option<Instant> {
        let after = world.transport.server.next_deadline()?;
        Some(Instant::ORIGIN + after)
    }

    fn peer_timer(world: &mut World<'_>) {
        let now = world.time_of_server();
        world.transport.server.timer(now);
        world.drain_server();
    }

    fn fire_late_timer(world: &mut World<'_>) -> Result<(), String> {
        let deadline = world.transport.monitor.as_ref().and_then(|it| it.monitor.next_deadline());
        match deadline {
            Some(deadline) if deadline.at <= world.now => world.monitor_timer(),
            Some(_) | None => Ok(()),
        }
    }

    fn happen(world: &mut World<'_>, due: Due) -> Result<(), String> {
        match due {
            Due::Arrive { link, at } => world.arrive(link, at),
            Due::Speak { connection, use_number } => world.speak(connection, use_number),
            Due::Silence { connection, use_number, command } => {
                world.silence(connection, use_number, command)
            }
            Due::OpeningTimesOut { link } => world.opening_times_out(link),
            Due::ParentEnds => world.parent_ends(),
        }
    }

    fn check(world: &World<'_>) -> Result<(), String> {
        world.expect_agreement()?;
        world.transport.scanner.verdict()
    }

    /// Clients select a server first; some callers check out anyway.
    fn may_ask(world: &mut World<'_>, caller: u32) -> Result<bool, String> {
        if world.is_closed {
            return Ok(false);
        }
        if Self::sees_server(world) || (!world.is_recovering && world.random.one_in(8)) {
            return Ok(true);
        }
        world.plan_in(SELECTION, world::Due::Ask { caller });
        world.feed_monitor(monitor::Input::RequestCheck)?;
        Ok(false)
    }

    fn use_connection(world: &mut World<'_>, connection: u64) {
        let Some(socket) = world.accounting.socket(connection) else { return };
        let use_number = socket.use_number;
        let profile = world.plan.profile;
        let is_recovering = world.is_recovering;
        let mut often = |times| !is_recovering && world.random.one_in(times);
        let (leaks, is_abandoned) = (often(profile.leaks), often(profile.breaks));
        let pins = often(profile.pins);
        let commands = if is_recovering { 1 } else { world.random.between(0, 3) };
        let commands = u32::try_from(commands).unwrap_or_default();
        world.transport.uses.insert(connection, Use { commands, is_abandoned, broken: None });
        if is_abandoned {
            world.coverage.count(Situation::ReturnsBroken);
        }
        if leaks {
            world.coverage.count(Situation::Leaks);
            return;
        }
        let after = world.time(world.plan.work);
        world.plan_in(after, Due::Speak { connection, use_number });
        if pins {
            world.plan_in(Duration::ZERO, world::Due::Repurpose { connection, use_number });
        }
    }

    fn health(world: &mut World<'_>, socket: &Socket) -> Result<Health<NumberedError>, String> {
        let connection = socket.id.number();
        let health = match world.flaw_of(connection) {
            Some(error) => Health::Errored(world.numbered(&error)),
            None => Health::Healthy,
        };
        world.transport.uses.remove(&connection);
        Ok(health)
    }

    fn interrupt(world: &mut World<'_>, connection: u64) {
        let reason = "interrupted due to server monitor timeout";
        let error = ConnectionError::network(Stage::Operation, reason);
        world.transport.uses.entry(connection).or_default().broken = Some(error);
    }

    fn before_input(
        world: &mut World<'_>,
        at: Instant,
        input: &Input<WireTypes>,
    ) -> Result<(), String> {
        world.transport.scanner.inputs += 1;
        let Some(recording) = &mut world.transport.recording else { return Ok(()) };
        let recorded = recording.feed(at, input.clone());
        recorded.map_err(|error| format!("the input cannot be recorded: {error}"))
    }

    fn before_action(world: &mut World<'_>, action: &Action<WireTypes>) {
        world.scan_action(action);
    }

    fn open(world: &mut World<'_>, id: ConnId, deadline: Option<Instant>) {
        let allowed = deadline.map(|deadline| deadline.saturating_since(world.now));
        let allowed = allowed.unwrap_or(Duration::MAX).min(world.plan.connect_timeout);
        let (owner, options) = (Owner::Pool(id.number()), Arc::clone(&world.transport.options));
        let link = world.open_link(owner, options, allowed);
        world.transport.links.insert(id.number(), link);
    }

    /// A shell aborts at once, or is too late and answers.
    fn abort(world: &mut World<'_>, id: ConnId) -> Result<(), String> {
        let Wire { links, sockets, .. } = &world.transport;
        // After a fork the sockets of the parent are not touched.
        let is_ours = links.get(&id.number()).is_some_and(|it| sockets.contains_key(it));
        if world.is_recovering || !is_ours || world.random.flip() {
            world.hang_up_connection(id.number());
            world.accounting.drop_unopened(id.number());
        }
        Ok(())
    }

    fn hang_up(world: &mut World<'_>, connection: u64) {
        world.hang_up_connection(connection);
    }

    fn change_trouble(world: &mut World<'_>) {
        if world.transport.trouble.is_some() {
            world.end_trouble();
        } else if let Some(trouble) = world.random.pick(&world.plan.transport.troubles) {
            world.begin_trouble(trouble);
        }
        world.scan_all();
    }

    fn move_services(world: &mut World<'_>) {
        let services = usize::try_from(world.random.between(1, 4)).unwrap_or(1);
        let topology = Topology::LoadBalanced(LoadBalanced { services });
        let now = world.time_of_server();
        world.transport.server.set_topology(now, topology);
        world.drain_server();
    }

    /// The sockets belong to the parent now and are dropped without a word.
    fn before_fork(world: &mut World<'_>) {
        for link in std::mem::take(&mut world.transport.sockets).into_keys() {
            let sent = world.transport.network.sent(link).unwrap_or_default();
            world.transport.parents.push((link, sent));
        }
        let parent_lives = world.plan.trouble_time.draw(&mut world.random);
        world.plan_in(parent_lives, Due::ParentEnds);
        world.abandon_uses();
        world.transport.monitor = None;
    }

    fn after_fork(world: &mut World<'_>) -> Result<(), String> {
        if world.is_balanced() { Ok(()) } else { world.begin_monitoring() }
    }

    fn misuse(world: &mut World<'_>) -> Option<Result<(), String>> {
        match world.random.below(4) {
            0 => world.misuse_monitor(),
            1 => world.send_out_of_turn(),
            _ => world.misuse_pool(),
        }
    }

    fn begin_recovery(world: &mut World<'_>) -> Result<(), String> {
        world.end_trouble();
        world.is_recovering = true;
        world.forget_timer();
        if let Some(monitor) = &mut world.transport.monitor {
            monitor.clock.forget_timer();
        }
        world.finish_everything();
        world.parent_ends()
    }

    fn before_close(world: &mut World<'_>) -> Result<(), String> {
        if world.is_recovering { Ok(()) } else { Self::begin_recovery(world) }
    }

    fn after_close(world: &mut World<'_>) -> Result<(), String> {
        world.end_monitoring()
    }

    /// Behind a load balancer, it is always selectable.
    fn sees_server(world: &World<'_>) -> bool {
        let monitor = world.transport.monitor.as_ref();
        monitor.is_none_or(|it| it.monitor.description().is_data_bearing())
    }

    /// The check that is under way may go unanswered, and the next one, too.
    fn sight(plan: &Plan) -> Duration {
        (plan.connect_timeout + plan.heartbeat) * 2 + Duration::from_secs(1)
    }

    /// No socket is left, neither at the client nor at the server, unless the network lost its end.
    fn expect_no_socket(world: &World<'_>) -> Result<(), String> {
        let Wire { network, sockets, .. } = &world.transport;
        let held: Vec<_> = network.held().collect();
        let forgotten: Vec<_> = network.forgotten().collect();
        if held.is_empty() && forgotten.is_empty() && sockets.is_empty() {
            return Ok(());
        }
        let many = sockets.len();
        Err(format!("links are left: {held:?}; the server's {forgotten:?}; {many} sockets"))
    }

    fn finish(world: &mut World<'_>) -> Result<(), String> {
        world.end_recording()
    }
}
