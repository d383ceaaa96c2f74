//! What such a world is like: drawn from its seed.

use std::fmt;
use std::time::Duration;

use cenote_core::pool::PoolOptions;
use cenote_core::wire::CompressorId;
use cenote_endpoint::{
    LoadBalanced, Mechanism, ReplicaSet, ScramSettings, Settings, Topology, User,
};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::trouble::Trouble;
use crate::lockstep::Brief;
use crate::simulate::chance::{Chance, Latency};
use crate::simulate::habits::Habits;
use crate::simulate::plan::{
    TimeFaults, draw_callers, draw_latency, draw_moves, draw_options, draw_time_faults,
    milliseconds,
};

/// Every parameter of a world whose connections are real conversations. Most of what can go wrong is
/// left out of each one, because faults hide each other.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Where all of it comes from.
    pub seed: u64,
    /// How many inputs the machines get before everything gets well again.
    pub steps: u64,
    /// Of the pool.
    pub options: PoolOptions,
    /// What may be set while it runs; none in most worlds.
    pub other_options: Vec<PoolOptions>,
    /// How many there are who use the pool, each with one connection at a time.
    pub callers: u32,
    /// What a caller does between two check-outs.
    pub think: Latency,
    /// What a caller does between two commands.
    pub work: Latency,
    /// What callers are like.
    pub habits: Habits,
    /// What the server is part of.
    pub topology: Topology,
    /// How clients log in; `None`: not at all.
    pub login: Option<Login>,
    /// What the server agrees to, and the client offers.
    pub compressors: Vec<CompressorId>,
    /// Connections go through a proxy, which asks who is there.
    pub has_proxy: bool,
    /// How long a packet takes.
    pub latency: Latency,
    /// Packets are cut at chance into pieces of at most so many bytes; 0: not at all.
    pub pieces: u64,
    /// `connectTimeoutMS`.
    pub connect_timeout: Duration,
    /// `socketTimeoutMS`.
    pub socket_timeout: Duration,
    /// `heartbeatFrequencyMS`.
    pub heartbeat: Duration,
    /// `serverMonitoringMode`.
    pub monitoring: &'static str,
    /// What happens to the server and the network.
    pub troubles: Vec<Trouble>,
    /// How long a trouble lasts, and how long it is quiet between two.
    pub trouble_time: Latency,
    /// What is wrong with time, as the machines are told of it.
    pub time: TimeFaults,
    /// Whoever embeds the machines makes a mistake each time that so many packets may take; 0: none.
    pub misuse_every: u64,
    /// How often routers go and others come; `None`: never.
    pub services_move_every: Option<Duration>,
    /// How often the process forks; `None`: never.
    pub fork_every: Option<Duration>,
    /// The pool is closed while everything is in flight, and not when all is calm.
    pub ends_abruptly: bool,
}

/// How clients log in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Login {
    /// What the server's user has.
    pub mechanism: Mechanism,
    /// The connection string says so, and does not leave it to hello.
    pub is_named: bool,
}

/// Everything that must not be shown, of this seed.
pub(super) struct Passwords {
    pub(super) user: String,
    pub(super) proxy: String,
}

pub(super) const USER: &str = "app";
pub(super) const PROXY_USER: &str = "me";
const HOST: &str = "db.example.com:27017";

impl Plan {
    /// The world of a seed.
    pub fn new(seed: u64, steps: u64) -> Self {
        // Not the numbers of the other kind of world.
        let chance = &mut Chance::new(seed ^ 0x0003_171e);
        // Worlds are what they were before there was this to be drawn.
        let later = &mut Chance::new(seed ^ 0x0003_1a7e5);
        let topology = draw_topology(chance);
        let services = u8::from(matches!(topology, Topology::LoadBalanced(_)));
        let changes = if later.one_in(4) { 3 } else { 0 };
        Self {
            seed,
            steps,
            other_options: (0..changes).map(|_| slow_down(draw_options(later, services))).collect(),
            options: slow_down(draw_options(chance, services)),
            callers: draw_callers(chance),
            think: draw_latency(chance, 200_000),
            work: draw_latency(chance, 50_000),
            habits: Habits::draw(chance, true),
            topology,
            login: draw_login(chance),
            compressors: draw_compressors(chance),
            has_proxy: chance.one_in(4),
            latency: draw_latency(chance, 10_000),
            pieces: if chance.one_in(4) { chance.between(1, 64) } else { 0 },
            connect_timeout: milliseconds(chance, 50, 1_000),
            socket_timeout: milliseconds(chance, 50, 1_000),
            heartbeat: milliseconds(chance, 500, 2_000),
            monitoring: chance.pick(&["auto", "stream", "poll"]).unwrap_or("auto"),
            troubles: Trouble::ALL.into_iter().filter(|_| chance.one_in(4)).collect(),
            trouble_time: Latency::Even(milliseconds(chance, 10, 1_000)),
            time: draw_time_faults(chance).with_tick(later),
            misuse_every: if later.one_in(4) { later.between(5, 50) } else { 0 },
            services_move_every: draw_moves(later, services, 5_000),
            fork_every: later.one_in(6).then(|| milliseconds(later, 500, 5_000)),
            ends_abruptly: chance.one_in(4),
        }
    }

    pub(super) fn is_balanced(&self) -> bool {
        matches!(self.topology, Topology::LoadBalanced(_))
    }

    pub(super) fn passwords(&self) -> Passwords {
        let mut chance = Chance::new(self.seed ^ 0x5ec2e7);
        // With everything that a connection string has to encode.
        let user = format!("open:{:016x}@/sesame%", chance.number());
        let proxy = format!("let me:{:016x}&in=", chance.number());
        Passwords { user, proxy }
    }

    /// What an application would be configured with.
    pub(super) fn uri(&self) -> String {
        let encode = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        let Passwords { user: password, proxy } = self.passwords();
        let user = self.login.map_or(String::new(), |_| format!("{USER}:{}@", encode(&password)));
        let mut uri = format!(
            "mongodb://{user}{HOST}/?connectTimeoutMS={}&socketTimeoutMS={}\
             &heartbeatFrequencyMS={}&serverMonitoringMode={}&appName=world",
            self.connect_timeout.as_millis(),
            self.socket_timeout.as_millis(),
            self.heartbeat.as_millis(),
            self.monitoring
        );
        if let Some(Login { mechanism, is_named: true }) = self.login {
            uri += &format!("&authMechanism={}", mechanism.name());
        }
        if !self.compressors.is_empty() {
            let names: Vec<_> = self.compressors.iter().map(|it| it.name()).collect();
            uri += &format!("&compressors={}", names.join(","));
        }
        if self.has_proxy {
            let (user, password) = (PROXY_USER, encode(&proxy));
            uri += &format!("&proxyHost=proxy&proxyUsername={user}&proxyPassword={password}");
        }
        if self.is_balanced() {
            uri += "&loadBalanced=true";
        }
        uri
    }

    /// The server that it finds.
    pub(super) fn settings(&self) -> Settings {
        let password = self.passwords().user;
        let user = self.login.map(|login| match login.mechanism {
            Mechanism::Plain => User::plain(USER, &password),
            mechanism
            @ (Mechanism::ScramSha1 | Mechanism::ScramSha256 | Mechanism::MongodbX509) => {
                User::new(USER, &password).with_mechanisms(&[mechanism])
            }
        });
        Settings {
            address: HOST.to_owned(),
            topology: self.topology.clone(),
            auth: self.login.is_some(),
            users: user.into_iter().collect(),
            compressors: self.compressors.clone(),
            // The least that clients accept (AU-33).
            scram: ScramSettings {
                sha1_iterations: 4096,
                sha256_iterations: 4096,
                ..ScramSettings::default()
            },
            ..Settings::seeded(self.seed)
        }
    }
}

/// A conversation takes its time, and with it all that a pool waits for: what is opened for the minimum
/// is not to be too old before the last of it is there.
fn slow_down(options: PoolOptions) -> PoolOptions {
    let slower = |time: Option<Duration>, times: u32| time.map(|time| time * times);
    let mut options = options;
    options.max_idle_time = slower(options.max_idle_time, 100);
    options.max_lifetime = slower(options.max_lifetime, 40);
    options.wait_queue_timeout = slower(options.wait_queue_timeout, 10);
    options.leak_detection_threshold = slower(options.leak_detection_threshold, 10);
    options
}

fn draw_topology(chance: &mut Chance) -> Topology {
    match chance.below(8) {
        0 => Topology::Standalone,
        1 => Topology::Mongos,
        2 | 3 => {
            let services = usize::try_from(chance.between(1, 4)).unwrap_or(1);
            Topology::LoadBalanced(LoadBalanced { services })
        }
        _ => Topology::ReplicaSet(ReplicaSet::primary("rs")),
    }
}

fn draw_login(chance: &mut Chance) -> Option<Login> {
    let (mechanism, is_named) = match chance.below(6) {
        0 | 1 => return None,
        2 => (Mechanism::ScramSha1, chance.flip()),
        3 => (Mechanism::Plain, true),
        _ => (Mechanism::ScramSha256, chance.flip()),
    };
    Some(Login { mechanism, is_named })
}

fn draw_compressors(chance: &mut Chance) -> Vec<CompressorId> {
    let all = [CompressorId::Snappy, CompressorId::Zlib, CompressorId::Zstd];
    all.into_iter().filter(|_| chance.one_in(4)).collect()
}

/// Everything, a line each: printed before the world begins. No password is in it.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { callers, think, work, habits, pieces, latency, .. } = self;
        writeln!(f, "seed {}, on the wire, {} inputs, then the end", self.seed, self.steps)?;
        writeln!(f, "  pool            {}", Brief(&self.options))?;
        for options in &self.other_options {
            writeln!(f, "  or              {}", Brief(options))?;
        }
        writeln!(f, "  callers         {callers}; think {think}; work {work}")?;
        writeln!(f, "  one in so many  {habits:?}")?;
        write!(f, "  server          {:?}", self.topology)?;
        match self.services_move_every {
            Some(every) => writeln!(f, ", which come and go every {every:?}")?,
            None => writeln!(f)?,
        }
        match self.login {
            Some(Login { mechanism, is_named: true }) => {
                writeln!(f, "  login           {}", mechanism.name())?;
            }
            Some(Login { mechanism, is_named: false }) => {
                writeln!(f, "  login           {}, as hello says", mechanism.name())?;
            }
            None => writeln!(f, "  login           none")?,
        }
        writeln!(f, "  compressors     {:?}", self.compressors)?;
        writeln!(f, "  proxy           {}", if self.has_proxy { "with a login" } else { "none" })?;
        write!(f, "  network         {latency}")?;
        if *pieces != 0 {
            write!(f, ", in pieces of up to {pieces} bytes")?;
        }
        writeln!(f)?;
        let Self { connect_timeout, socket_timeout, heartbeat, monitoring, .. } = self;
        writeln!(f, "  timeouts        connect {connect_timeout:?}, socket {socket_timeout:?}")?;
        writeln!(f, "  monitor         {monitoring}, every {heartbeat:?}")?;
        writeln!(f, "  troubles        {:?}, each {}", self.troubles, self.trouble_time)?;
        writeln!(f, "  time            {:?}", self.time)?;
        writeln!(f, "  misuse          every {} times the network (0: never)", self.misuse_every)?;
        writeln!(f, "  forks           {:?}", self.fork_every)?;
        write!(
            f,
            "  ends            {}",
            if self.ends_abruptly { "abruptly" } else { "once all is well" }
        )
    }
}
