//! The pool's heap memory, checked after every input of simulated worlds and of loads: it depends on the largest
//! number of connections and requests at one time, not on how many there ever were. So does that of a topology with its
//! monitors and pools on the number of servers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cenote_core::connect::{ClientMetadata, ConnectionDescription, Environment, EstablishOptions};
use cenote_core::monitor::{self, Monitor, MonitorOptions, ServerDescription};
use cenote_core::pool::{
    Action, ConnId, Health, Input, Instant, PoolOptions, PoolState, Purpose, WaiterId,
};
use cenote_core::topology::{self, ServerId, Topology, TopologyOptions};
use cenote_core::uri::ConnectionString;
use cenote_lab::lockstep::{Tagged, service};
use cenote_lab::simulate::{Plan, inputs_of};

/// Bytes for each connection and each request. A connection is a slot of some hundred bytes, with its links in a
/// list and, with lifetimes, up to two heap entries of 24 bytes. A request is an entry of some hundred bytes, which
/// may leave a tombstone of the same size, and up to two entries of 24 bytes in another heap. Containers grow by
/// doubling, and for a moment the old one exists beside the new one.
const EACH: usize = 768;

/// Bytes regardless of their number: both heaps and the queue keep up to 32 obsolete entries; services are in a map.
const ALWAYS: usize = 16 << 10;

pub(crate) fn depends_on_what_there_is_at_one_time() {
    let mut inputs = 0;
    for seed in 0..300 {
        let plan = Plan::new(seed, 2_000);
        let fed = inputs_of(&plan).unwrap_or_else(|failure| panic!("{plan}\n{failure}"));
        let mut judge = Judge::new(plan.options.clone());
        for (now, input) in fed {
            // Refused inputs are returned, and count as well.
            judge.feed(now, input);
        }
        inputs += judge.fed;
    }
    println!(
        "{inputs} inputs of worlds: never more than {EACH} bytes for each connection and request: ok"
    );
    requests_behind_one_that_waits();
    connections_with_lifetimes();
    services_that_come_and_go();
    servers_that_come_and_go();
}

/// The pool, and the largest numbers of connections and requests at one time.
struct Judge {
    // Counts from its creation.
    _profiler: dhat::Profiler,
    pool: PoolState<Tagged>,
    most_connections: usize,
    most_requests: usize,
    fed: u64,
    given: Vec<Action<Tagged>>,
}

impl Judge {
    fn new(options: PoolOptions) -> Self {
        let given = Vec::with_capacity(4_096);
        let profiler = dhat::Profiler::builder().testing().build();
        let pool = PoolState::new(Instant::ORIGIN, options, &mut |_: Action<Tagged>| {});
        let pool = pool.expect("usable options");
        let (most_connections, most_requests, fed) = (0, 0, 0);
        Self { _profiler: profiler, pool, most_connections, most_requests, fed, given }
    }

    fn feed(&mut self, now: Instant, input: Input<Tagged>) {
        self.given.clear();
        let given = &mut self.given;
        let before = self.pool.waiters().count();
        let _ = self.pool.handle(now, input, &mut |action: Action<Tagged>| {
            if !matches!(action, Action::EmitEvent(_)) && given.len() < given.capacity() {
                given.push(action);
            }
        });
        self.fed += 1;
        let connections = self.pool.snapshot().total as usize;
        self.most_connections = self.most_connections.max(connections + 1);
        self.most_requests = self.most_requests.max(before + 1);
        let most = self.most_connections + self.most_requests;
        let (bytes, allowed) = (dhat::HeapStats::get().curr_bytes, ALWAYS + EACH * most);
        let fed = self.fed;
        assert!(bytes <= allowed, "{bytes} bytes after {fed} inputs, {allowed} for {most} at most");
    }

    fn ask(&mut self, at: u64, number: u64, deadline: Option<Instant>) {
        let (id, purpose) = (WaiterId(number), Purpose::Other);
        self.feed(at_nanos(at), Input::CheckOutRequested { id, waiter: number, deadline, purpose });
    }

    /// Establishes the connection that the last input started.
    fn open(&mut self, at: u64, by: Option<u8>) -> ConnId {
        let started = self.given.iter().find(|it| matches!(it, Action::StartEstablish { .. }));
        let Some(&Action::StartEstablish { id, .. }) = started else {
            panic!("a connection is to be established")
        };
        self.feed(
            at_nanos(at),
            Input::Handshaken { id, service: by.map(service), clears_at_hello: None },
        );
        self.feed(at_nanos(at), Input::EstablishSucceeded { id, conn: 1 });
        id
    }
}

const MANY: u64 = 50_000;

/// One request stays in front; behind it, others with deadlines in any order come and are cancelled.
fn requests_behind_one_that_waits() {
    let mut judge = Judge::new(PoolOptions::default().with_max_pool_size(1));
    judge.feed(Instant::ORIGIN, Input::Ready);
    judge.ask(1, 1, None);
    judge.open(1, None);
    judge.ask(2, 2, None);
    for number in 9..MANY {
        let deadline = at_nanos(2 * MANY + (number * 7_919) % MANY);
        judge.ask(number, number, Some(deadline));
        if number % 8 == 0 {
            for id in number - 5..=number {
                judge.feed(at_nanos(number), Input::CheckOutCancelled { id: WaiterId(id) });
            }
            for id in [number - 7, number - 6] {
                judge.feed(at_nanos(number), Input::CheckOutCancelled { id: WaiterId(id) });
            }
        }
    }
    let first = judge.pool.waiters().next().expect("a request waits");
    assert_eq!(first.id, WaiterId(2), "in front of all others");
    println!("{MANY} requests behind one that waits: ok");
}

/// One connection stays; the others are closed long before their lifetime ends.
fn connections_with_lifetimes() {
    let options = PoolOptions::default().with_max_lifetime(Duration::from_secs(3_600));
    let mut judge = Judge::new(options);
    judge.feed(Instant::ORIGIN, Input::Ready);
    judge.ask(1, 1, None);
    judge.open(1, None);
    for number in 2..MANY {
        judge.ask(number, number, None);
        let id = judge.open(number, None);
        let health = Health::Errored(number);
        judge.feed(at_nanos(number), Input::CheckedIn { id, conn: 1, health });
    }
    assert_eq!(judge.pool.snapshot().total, 1);
    println!("{MANY} connections beside one that lives on: ok");
}

/// Each service has one connection and one clear.
fn services_that_come_and_go() {
    let options = PoolOptions::default().with_load_balanced(true);
    let mut judge = Judge::new(options);
    judge.feed(Instant::ORIGIN, Input::Ready);
    for number in 1..MANY {
        judge.ask(number, number, None);
        let by = (number % 251) as u8;
        let id = judge.open(number, Some(by));
        let clear = Input::Clear { cause: number, interrupt: false, service: Some(service(by)) };
        judge.feed(at_nanos(number), clear);
        judge.feed(at_nanos(number), Input::CheckedIn { id, conn: 1, health: Health::Healthy });
    }
    println!("{MANY} connections of services that come and go: ok");
}

/// Bytes for each server of a topology: its description, its monitor and a pool without connections.
const EACH_SERVER: usize = 6 << 10;

/// A topology, with a monitor and a pool for each of its servers, as an embedder has them.
struct Deployment {
    topology: Topology,
    establish: Arc<EstablishOptions>,
    servers: BTreeMap<ServerId, (Monitor, PoolState<Tagged>)>,
    set_version: i64,
}

impl Deployment {
    fn new() -> Self {
        let uri = ConnectionString::parse("mongodb://a/?replicaSet=rs").expect("it is valid");
        let client = ClientMetadata::new(None, &Environment::default()).expect("it fits");
        let establish = Arc::new(EstablishOptions::for_client(&client).for_monitor());
        let mut actions = Vec::new();
        let topology = Topology::new(TopologyOptions::new(&uri), &mut actions);
        let mut deployment = Self { topology, establish, servers: BTreeMap::new(), set_version: 0 };
        deployment.perform(actions);
        deployment
    }

    /// The primary names so many members besides itself.
    fn list(&mut self, others: u32) {
        self.set_version += 1;
        let others = (1..=others).map(|at| format!("m{at}.example.com:27017"));
        let hosts: Vec<_> = ["a:27017".to_owned()].into_iter().chain(others).collect();
        let hosts: bson::RawArrayBuf = hosts.iter().map(String::as_str).collect();
        let mut reply = bson::rawdoc! {
            "ok": 1, "isWritablePrimary": true, "setName": "rs", "setVersion": self.set_version,
        };
        reply.append(bson::cstr!("hosts"), hosts);
        let hello = ConnectionDescription::from_reply(&reply, &self.establish).expect("a member");
        let description = ServerDescription::known(Arc::new(hello), None, Instant::ORIGIN);
        let description = Arc::new(description);
        let mut actions = Vec::new();
        let described = topology::Input::Described { id: ServerId(1), description };
        self.topology.handle(described, &mut actions);
        self.perform(actions);
    }

    fn perform(&mut self, actions: Vec<topology::Action>) {
        let now = Instant::ORIGIN;
        for action in actions {
            match action {
                topology::Action::AddServer { id, .. } => {
                    let (options, establish) = (MonitorOptions::default(), &self.establish);
                    let monitor = Monitor::new(now, options, Arc::clone(establish), &mut |_| {});
                    let options = PoolOptions::default();
                    let pool = PoolState::new(now, options, &mut |_: Action<Tagged>| {});
                    let server = (monitor.expect("good options"), pool.expect("good options"));
                    self.servers.insert(id, server);
                }
                topology::Action::RemoveServer { id, .. } => {
                    let (mut monitor, mut pool) = self.servers.remove(&id).expect("it is there");
                    monitor.handle(now, monitor::Input::Close, &mut |_| {}).expect("it is kept");
                    let closed = pool.handle(now, Input::Close, &mut |_: Action<Tagged>| {});
                    closed.expect("it is kept");
                }
                topology::Action::EmitEvent(_) => {}
            }
        }
    }
}

/// Five hundred times a hundred members appear and disappear: in the end there is no more than in the beginning.
fn servers_that_come_and_go() {
    let _profiler = dhat::Profiler::builder().testing().build();
    let mut deployment = Deployment::new();
    let mut alone = None;
    for round in 0..500 {
        deployment.list(100);
        let (bytes, servers) = (dhat::HeapStats::get().curr_bytes, deployment.servers.len());
        assert!(bytes <= ALWAYS + EACH_SERVER * servers, "{bytes} bytes for {servers} servers");
        deployment.list(0);
        assert_eq!(deployment.servers.len(), 1);
        let bytes = dhat::HeapStats::get().curr_bytes;
        let first = *alone.get_or_insert(bytes);
        assert!(bytes <= first, "{bytes} bytes after {round} rounds, {first} after the first");
    }
    println!("50000 members that come and go: ok");
}

fn at_nanos(nanos: u64) -> Instant {
    Instant::from_nanos(nanos)
}
