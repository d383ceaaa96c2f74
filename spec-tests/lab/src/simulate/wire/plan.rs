//! The parameters of a world with a network, drawn from its seed.

use std::fmt;
use std::time::Duration;

use cenote_core::pool::PoolOptions;
use cenote_core::wire::CompressorId;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::trouble::Trouble;
use crate::simulate::caller_profile::CallerProfile;
use crate::simulate::latency::Latency;
use crate::simulate::plan::{
    self, TimeFaults, draw_callers, draw_latency, draw_moves, draw_options, draw_overload_policies,
    draw_pauses, milliseconds,
};
use cenote_endpoint::{
    LoadBalanced, Mechanism, ReplicaSet, ScramSettings, Settings, Topology, User,
};
use cenote_replay::random::SplitMix;

/// The parameters of a world with a network.
pub type Plan = plan::Plan<Parameters>;

/// What is particular to a world with a network.
#[derive(Clone, Debug)]
pub struct Parameters {
    /// What kind of server the endpoint is.
    pub topology: Topology,
    /// How clients log in; `None`: without authentication.
    pub login: Option<Login>,
    /// The compressors that the client offers and the server supports.
    pub compressors: Vec<CompressorId>,
    /// Connections go through a SOCKS5 proxy with authentication.
    pub has_proxy: bool,
    /// How long a packet takes.
    pub latency: Latency,
    /// Data is cut into packets of at most this many bytes; 0: not at all.
    pub pieces: u64,
    /// `socketTimeoutMS`.
    pub socket_timeout: Duration,
    /// `serverMonitoringMode`.
    pub monitoring: &'static str,
    /// The troubles of the server and the network.
    pub troubles: Vec<Trouble>,
}

/// How clients log in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Login {
    /// The mechanism of the server's user.
    pub mechanism: Mechanism,
    /// The connection string names the mechanism and does not leave the choice to hello.
    pub is_named: bool,
}

/// The passwords of a world, which must not be visible anywhere.
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
        // Other numbers than those of the other kind of world.
        let random = &mut SplitMix(seed ^ 0x0003_171e);
        // A second generator, so that parameters that were added later leave the others as they were.
        let later = &mut SplitMix(seed ^ 0x0003_1a7e5);
        let topology = draw_topology(random);
        let services = u8::from(matches!(topology, Topology::LoadBalanced(_)));
        let changes = if later.one_in(4) { 3 } else { 0 };
        let other_options =
            (0..changes).map(|_| slow_down(draw_options(later, services))).collect();
        let mut options = slow_down(draw_options(random, services));
        // A generator of its own, so that worlds stay as they were.
        let report = &mut SplitMix(seed ^ 0x0a15_73e4);
        options.unanswered_threshold = report.one_in(4).then(|| milliseconds(report, 1, 200));
        draw_overload_policies(seed, &mut options);
        let callers = draw_callers(random);
        let (think, work) = (draw_latency(random, 200_000), draw_latency(random, 50_000));
        let profile = CallerProfile::draw(random, true);
        let login = draw_login(random);
        let compressors = draw_compressors(random);
        let has_proxy = random.one_in(4);
        let latency = draw_latency(random, 10_000);
        let pieces = if random.one_in(4) { random.between(1, 64) } else { 0 };
        let connect_timeout = milliseconds(random, 50, 1_000);
        let socket_timeout = milliseconds(random, 50, 1_000);
        let heartbeat = milliseconds(random, 500, 2_000);
        let monitoring = random.pick(&["auto", "stream", "poll"]).unwrap_or("auto");
        let troubles = Trouble::ALL.into_iter().filter(|_| random.one_in(4)).collect();
        Self {
            seed,
            steps,
            options,
            other_options,
            callers,
            think,
            work,
            profile,
            connect_timeout,
            heartbeat,
            trouble_time: Latency::Uniform(milliseconds(random, 10, 1_000)),
            time: TimeFaults::draw(random, later),
            misuse_every: if later.one_in(4) { later.between(5, 50) } else { 0 },
            services_move_every: draw_moves(later, services, 5_000),
            fork_every: later.one_in(6).then(|| milliseconds(later, 500, 5_000)),
            pause_every: draw_pauses(seed, 5_000),
            ends_abruptly: random.one_in(4),
            transport: Parameters {
                topology,
                login,
                compressors,
                has_proxy,
                latency,
                pieces,
                socket_timeout,
                monitoring,
                troubles,
            },
        }
    }

    pub(super) fn passwords(&self) -> Passwords {
        let mut random = SplitMix(self.seed ^ 0x5ec2e7);
        // With all characters that a connection string has to encode.
        let user = format!("open:{:016x}@/sesame%", random.number());
        let proxy = format!("let me:{:016x}&in=", random.number());
        Passwords { user, proxy }
    }

    /// The client's connection string.
    pub(super) fn uri(&self) -> String {
        let encode = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        let Passwords { user: password, proxy } = self.passwords();
        let user = self
            .transport
            .login
            .map_or(String::new(), |_| format!("{USER}:{}@", encode(&password)));
        let mut uri = format!(
            "mongodb://{user}{HOST}/?connectTimeoutMS={}&socketTimeoutMS={}\
             &heartbeatFrequencyMS={}&serverMonitoringMode={}&appName=world",
            self.connect_timeout.as_millis(),
            self.transport.socket_timeout.as_millis(),
            self.heartbeat.as_millis(),
            self.transport.monitoring
        );
        if let Some(Login { mechanism, is_named: true }) = self.transport.login {
            uri += &format!("&authMechanism={}", mechanism.name());
        }
        if !self.transport.compressors.is_empty() {
            let names: Vec<_> = self.transport.compressors.iter().map(|it| it.name()).collect();
            uri += &format!("&compressors={}", names.join(","));
        }
        if self.transport.has_proxy {
            let (user, password) = (PROXY_USER, encode(&proxy));
            uri += &format!("&proxyHost=proxy&proxyUsername={user}&proxyPassword={password}");
        }
        if matches!(self.transport.topology, Topology::LoadBalanced(_)) {
            uri += "&loadBalanced=true";
        }
        uri
    }

    /// The server's settings.
    pub(super) fn settings(&self) -> Settings {
        let password = self.passwords().user;
        let user = self.transport.login.map(|login| match login.mechanism {
            Mechanism::Plain => User::plain(USER, &password),
            mechanism @ (Mechanism::ScramSha1
            | Mechanism::ScramSha256
            | Mechanism::MongodbX509
            | _) => User::new(USER, &password).with_mechanisms(&[mechanism]),
        });
        Settings {
            address: HOST.to_owned(),
            topology: self.transport.topology.clone(),
            auth: self.transport.login.is_some(),
            users: user.into_iter().collect(),
            compressors: self.transport.compressors.clone(),
            // The minimum that clients accept (AU-33).
            scram: ScramSettings {
                sha1_iterations: 4096,
                sha256_iterations: 4096,
                ..ScramSettings::default()
            },
            ..Settings::seeded(self.seed)
        }
    }
}

/// Scales time limits to the latency of a network: the first connection of the minimum pool size must not
/// expire before the last one is established.
fn slow_down(options: PoolOptions) -> PoolOptions {
    let slower = |time: Option<Duration>, times: u32| time.map(|time| time * times);
    let mut options = options;
    options.max_idle_time = slower(options.max_idle_time, 100);
    options.max_lifetime = slower(options.max_lifetime, 40);
    options.wait_queue_timeout = slower(options.wait_queue_timeout, 10);
    options.leak_detection_threshold = slower(options.leak_detection_threshold, 10);
    options
}

fn draw_topology(random: &mut SplitMix) -> Topology {
    match random.below(8) {
        0 => Topology::Standalone,
        1 => Topology::Mongos,
        2 | 3 => {
            let services = usize::try_from(random.between(1, 4)).unwrap_or(1);
            Topology::LoadBalanced(LoadBalanced { services })
        }
        _ => Topology::ReplicaSet(ReplicaSet::primary("rs")),
    }
}

fn draw_login(random: &mut SplitMix) -> Option<Login> {
    let (mechanism, is_named) = match random.below(6) {
        0 | 1 => return None,
        2 => (Mechanism::ScramSha1, random.flip()),
        3 => (Mechanism::Plain, true),
        _ => (Mechanism::ScramSha256, random.flip()),
    };
    Some(Login { mechanism, is_named })
}

fn draw_compressors(random: &mut SplitMix) -> Vec<CompressorId> {
    let all = [CompressorId::Snappy, CompressorId::Zlib, CompressorId::Zstd];
    all.into_iter().filter(|_| random.one_in(4)).collect()
}

/// Every parameter, one per line, without passwords.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Parameters { topology, login, compressors, has_proxy, .. } = &self.transport;
        let Parameters { latency, pieces, socket_timeout, monitoring, .. } = &self.transport;
        writeln!(f, "seed {}, on the wire, {} inputs, then the end", self.seed, self.steps)?;
        self.write_beginning(f)?;
        write!(f, "  server          {topology:?}")?;
        self.write_moves(f)?;
        match login {
            Some(Login { mechanism, is_named: true }) => {
                writeln!(f, "  login           {}", mechanism.name())?;
            }
            Some(Login { mechanism, is_named: false }) => {
                writeln!(f, "  login           {}, as hello says", mechanism.name())?;
            }
            None => writeln!(f, "  login           none")?,
        }
        writeln!(f, "  compressors     {compressors:?}")?;
        writeln!(f, "  proxy           {}", if *has_proxy { "with a login" } else { "none" })?;
        write!(f, "  network         {latency}")?;
        if *pieces != 0 {
            write!(f, ", in packets of up to {pieces} bytes")?;
        }
        writeln!(f)?;
        let Self { connect_timeout, heartbeat, .. } = self;
        writeln!(f, "  timeouts        connect {connect_timeout:?}, socket {socket_timeout:?}")?;
        writeln!(f, "  monitor         {monitoring}, every {heartbeat:?}")?;
        self.write_faults(f, &self.transport.troubles, "packet")
    }
}
