//! The parameters of a world of several servers, drawn from its seed.

use std::fmt;
use std::time::Duration;

use cenote_core::pool::PoolOptions;

use super::cluster::{Change, WrongAnswer};
use crate::simulate::latency::Latency;
use crate::simulate::plan::{TimeFaults, draw_latency, draw_u32, milliseconds};
use cenote_replay::random::SplitMix;

/// The parameters of a world of several servers. Each world leaves most faults out, because faults hide each other.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The seed of all random numbers in this world.
    pub seed: u64,
    /// The number of inputs before all faults end.
    pub steps: u64,
    /// What the servers are.
    pub deployment: Deployment,
    /// The options of each pool.
    pub options: PoolOptions,
    /// The number of callers, each of which has at most one connection at a time.
    pub callers: u32,
    /// The time between two operations of a caller.
    pub think: Latency,
    /// How long an operation takes.
    pub work: Latency,
    /// 1 in this many callers that wait for a connection cancel; 0: none.
    pub cancels: u64,
    /// `serverSelectionTimeoutMS`.
    pub selection_timeout: Duration,
    /// `connectTimeoutMS`.
    pub connect_timeout: Duration,
    /// `socketTimeoutMS`.
    pub socket_timeout: Duration,
    /// `heartbeatFrequencyMS`.
    pub heartbeat: Duration,
    /// `serverMonitoringMode`.
    pub monitoring: &'static str,
    /// How long a message takes.
    pub latency: Latency,
    /// What happens to the servers and the network.
    pub changes: Vec<Change>,
    /// The time between two changes.
    pub change_time: Latency,
    /// How long an election takes, and how long a primary without a majority stays one.
    pub election_time: Latency,
    /// What servers answer that is wrong.
    pub wrong_answers: Vec<WrongAnswer>,
    /// How long after the topology's actions are emitted they are performed, as by another thread; `None`: at once.
    pub delay: Option<Latency>,
    /// The interval at which hosts where no server is appear and disappear; `None`: never.
    pub churn_every: Option<Duration>,
    /// The interval at which the client's credential is replaced; `None`: never.
    pub credential_every: Option<Duration>,
    /// Faults of the clock and of timers.
    pub time: TimeFaults,
    /// The client is closed while operations are in flight, not after recovery.
    pub ends_abruptly: bool,
}

/// What the servers are, and how the client finds them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deployment {
    /// A replica set.
    ReplicaSet {
        /// Its members; the first one can become the primary.
        members: Vec<MemberKind>,
        /// How many of them the connection string names.
        seeds: usize,
        /// `replicaSet` is set.
        is_named: bool,
        /// `directConnection` is set.
        is_direct: bool,
    },
    /// Routers of a sharded cluster.
    Sharded {
        /// How many there are.
        routers: usize,
        /// They come from SRV records, which are looked up again.
        is_srv: bool,
    },
    /// One server alone.
    Standalone,
    /// A load balancer.
    LoadBalanced {
        /// How many services are behind it.
        services: u8,
    },
}

/// What the configuration of a replica set makes of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberKind {
    /// It can become the primary.
    Electable,
    /// It has priority 0.
    Passive,
    /// It holds no data.
    Arbiter,
    /// It is not shown to clients.
    Hidden,
}

/// The name of the replica set.
pub(super) const SET: &str = "rs";

/// The name whose SRV records name the routers.
pub(super) const SRV_HOST: &str = "cluster.example.com";

impl Plan {
    /// The world of a seed.
    pub fn new(seed: u64, steps: u64) -> Self {
        // Other numbers than those of the other kinds of worlds.
        let random = &mut SplitMix(seed ^ 0x00de_9107);
        let deployment = Deployment::draw(random);
        let heartbeat = milliseconds(random, 500, 2_000);
        let changes = Change::ALL.into_iter().filter(|_| random.one_in(3)).collect();
        let is_truthful = random.one_in(3);
        let wrong_answers =
            WrongAnswer::ALL.into_iter().filter(|_| random.one_in(6) && !is_truthful).collect();
        let of_credentials = &mut SplitMix(seed ^ 0x00de_c2ed);
        let has_churn = deployment.may_grow() && random.one_in(8);
        Self {
            seed,
            steps,
            options: draw_options(random, &deployment),
            callers: draw_u32(random, 1, 8),
            think: draw_latency(random, 500_000),
            work: draw_latency(random, 100_000),
            cancels: if random.one_in(4) { random.between(2, 20) } else { 0 },
            selection_timeout: milliseconds(random, 500, 10_000),
            connect_timeout: milliseconds(random, 50, 1_000),
            socket_timeout: milliseconds(random, 50, 1_000),
            heartbeat,
            monitoring: random.pick(&["auto", "stream", "poll"]).unwrap_or("auto"),
            latency: draw_latency(random, 10_000),
            changes,
            change_time: Latency::LongTailed(milliseconds(random, 20, 3_000)),
            election_time: draw_latency(random, 1_000_000),
            wrong_answers,
            delay: random.one_in(3).then(|| draw_latency(random, 300_000)),
            churn_every: has_churn.then(|| milliseconds(random, 5, 100)),
            credential_every: of_credentials
                .one_in(6)
                .then(|| milliseconds(of_credentials, 500, 5_000)),
            time: TimeFaults::draw(random, &mut SplitMix(seed ^ 0x00de_71ae)),
            ends_abruptly: random.one_in(4),
            deployment,
        }
    }

    /// The client's connection string; of SRV records, before they are looked up.
    pub(super) fn uri(&self) -> String {
        let (scheme, hosts) = match &self.deployment {
            Deployment::Sharded { is_srv: true, .. } => ("mongodb+srv", SRV_HOST.to_owned()),
            Deployment::ReplicaSet { .. }
            | Deployment::Sharded { is_srv: false, .. }
            | Deployment::Standalone
            | Deployment::LoadBalanced { .. } => ("mongodb", self.deployment.seeds().join(",")),
        };
        let more = match &self.deployment {
            Deployment::ReplicaSet { is_named, is_direct, .. } => {
                let set = if *is_named { format!("&replicaSet={SET}") } else { String::new() };
                let direct = if *is_direct { "&directConnection=true" } else { "" };
                format!("{set}{direct}")
            }
            Deployment::LoadBalanced { .. } => "&loadBalanced=true".to_owned(),
            Deployment::Sharded { .. } | Deployment::Standalone => String::new(),
        };
        format!(
            "{scheme}://{hosts}/?tls=false&connectTimeoutMS={}&socketTimeoutMS={}&heartbeatFrequencyMS={}\
             &serverSelectionTimeoutMS={}&serverMonitoringMode={}{more}",
            self.connect_timeout.as_millis(),
            self.socket_timeout.as_millis(),
            self.heartbeat.as_millis(),
            self.selection_timeout.as_millis(),
            self.monitoring,
        )
    }
}

impl Deployment {
    fn draw(random: &mut SplitMix) -> Self {
        match random.below(12) {
            0 => Self::Standalone,
            1 => Self::LoadBalanced { services: u8::try_from(random.between(1, 4)).unwrap_or(1) },
            2 | 3 => Self::Sharded { routers: draw_count(random, 1, 5), is_srv: random.flip() },
            kind => {
                let members = draw_members(random);
                let is_direct = kind == 4;
                let most = if is_direct { 1 } else { members.len() as u64 };
                let (seeds, is_named) = (draw_count(random, 1, most), random.flip());
                Self::ReplicaSet { members, seeds, is_named, is_direct }
            }
        }
    }

    /// The hosts of the connection string.
    pub(super) fn seeds(&self) -> Vec<String> {
        let count = match self {
            Self::ReplicaSet { seeds, .. } => *seeds,
            Self::Sharded { routers, .. } => *routers,
            Self::Standalone | Self::LoadBalanced { .. } => 1,
        };
        (0..count).map(host).collect()
    }

    /// How many services are behind a load balancer; 0 without one.
    pub(super) const fn services(&self) -> u8 {
        match self {
            Self::LoadBalanced { services } => *services,
            Self::ReplicaSet { .. } | Self::Sharded { .. } | Self::Standalone => 0,
        }
    }

    /// Whether hosts can be added while the client is in use.
    const fn may_grow(&self) -> bool {
        match self {
            Self::ReplicaSet { is_direct, .. } => !*is_direct,
            Self::Sharded { is_srv, .. } => *is_srv,
            Self::Standalone | Self::LoadBalanced { .. } => false,
        }
    }
}

/// The name of a server.
pub(super) fn host(index: usize) -> String {
    format!("n{index}.example.com:27017")
}

fn draw_count(random: &mut SplitMix, least: u64, most: u64) -> usize {
    usize::try_from(random.between(least, most)).unwrap_or(1)
}

fn draw_members(random: &mut SplitMix) -> Vec<MemberKind> {
    let count = draw_count(random, 1, 7);
    let draw = |index| match random.below(8) {
        _ if index == 0 => MemberKind::Electable,
        0 => MemberKind::Passive,
        1 => MemberKind::Arbiter,
        2 => MemberKind::Hidden,
        _ => MemberKind::Electable,
    };
    (0..count).map(draw).collect()
}

fn draw_options(random: &mut SplitMix, deployment: &Deployment) -> PoolOptions {
    let mut options = PoolOptions::default();
    options.max_pool_size = Some(draw_u32(random, 1, 6));
    options.min_pool_size = random.one_in(3).then_some(1);
    options.max_idle_time = random.one_in(4).then(|| milliseconds(random, 500, 5_000));
    options.wait_queue_timeout = random.flip().then(|| milliseconds(random, 10, 1_000));
    options.load_balanced = (deployment.services() != 0).then_some(true);
    options
}

/// Every parameter, one per line.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, steps, callers, think, work, cancels, .. } = self;
        let Self { changes, change_time, election_time, latency, .. } = self;
        writeln!(f, "seed {seed}, a deployment, {steps} inputs, then the end")?;
        writeln!(f, "  deployment      {:?}", self.deployment)?;
        writeln!(f, "  client          {}", self.uri())?;
        writeln!(f, "  pools           {}", self.options)?;
        writeln!(
            f,
            "  callers         {callers}; think {think}; work {work}; one in {cancels} cancels"
        )?;
        writeln!(f, "  network         {latency}")?;
        writeln!(f, "  changes         {changes:?}, each {change_time}")?;
        writeln!(f, "  elections       {election_time}")?;
        writeln!(f, "  wrong answers   {:?}", self.wrong_answers)?;
        match self.delay {
            Some(delay) => writeln!(f, "  servers         are added and removed {delay} late")?,
            None => writeln!(f, "  servers         are added and removed at once")?,
        }
        writeln!(f, "  churn           {:?}", self.churn_every)?;
        writeln!(f, "  credentials     {:?}", self.credential_every)?;
        writeln!(f, "  time            {:?}", self.time)?;
        let ends = if self.ends_abruptly { "abruptly" } else { "after recovery" };
        write!(f, "  ends            {ends}")
    }
}
