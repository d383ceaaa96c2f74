//! How many threads a client has, as the operating system counts them.

use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use bson::rawdoc;
use cenote_check::EventGuard;
use cenote_endpoint::{Endpoint, ListenOptions, ReplicaSet, Settings, Topology};
use cenote_mio::{Client, Selector};
use cenote_test_runtimes::alone;

use crate::shells::{Shell, Subscribers, client};

/// Longer than anything takes on the slowest machine.
const LONG: Duration = Duration::from_secs(60);

/// The names of Cenote's threads.
pub(crate) fn own_threads() -> Vec<String> {
    let tasks = fs::read_dir("/proc/self/task").expect("Linux says it").flatten();
    // One may end meanwhile.
    let names = tasks.filter_map(|task| fs::read_to_string(task.path().join("comm")).ok());
    names.map(|name| name.trim().to_owned()).filter(|name| name.starts_with("cenote-")).collect()
}

/// How many threads of that name there are now.
fn threads(name: &str) -> usize {
    own_threads().iter().filter(|it| *it == name).count()
}

/// With a judge of its events.
fn judged(uri: &str) -> Client {
    let sentry = EventGuard::new();
    let builder = Client::builder(uri).expect("a connection string");
    let builder = builder.on_event(move |told| sentry.hear(&told.event, &told.address));
    builder.build().expect("a client")
}

#[test]
fn one_thread_for_all_servers() {
    alone(|| {
        let settings = || Settings { topology: Topology::Mongos, ..Settings::default() };
        let start = |_| Endpoint::start(settings(), ListenOptions::default());
        let endpoints: Vec<_> = (0..100).map(|n| start(n).expect("it starts")).collect();
        let hosts: Vec<_> = endpoints.iter().map(|it| it.address().to_string()).collect();
        let client = judged(&format!("mongodb://{}", hosts.join(",")));
        for endpoint in &endpoints {
            let mut connection =
                client.check_out(&Selector::Address(endpoint.address())).expect("a connection");
            connection.command("admin", &rawdoc! { "ping": 1 }).expect("a reply");
        }
        assert_eq!((threads("cenote-loop"), threads("cenote-helper")), (1, 0));
        client.close();
        // Joined, it may still be seen for a moment.
        let end = Instant::now() + LONG;
        while threads("cenote-loop") > 0 {
            assert!(Instant::now() < end, "the thread has not ended");
        }
        servers_that_come_and_go();
    });
}

/// However many names there are at once; and each server's story is told.
// Reports tokio#5338, uv#4599, turborepo#13231 (mended): look-ups without an answer take all threads, and hold up the program's
// end.
#[test]
fn names_take_few_threads() {
    alone(|| {
        for shell in [Shell::Tokio, Shell::Mio, Shell::Smol] {
            let hosts: Vec<_> = (0..50).map(|number| format!("host-{number}.invalid")).collect();
            let uri = format!("mongodb://{}/?connectTimeoutMS=2000", hosts.join(","));
            let client = client(shell, &uri, None, Subscribers::default());
            let end = Instant::now() + LONG;
            let mut most = 0;
            while client.servers().iter().any(|server| server.description.error.is_none()) {
                most = most.max(threads("cenote-resolver"));
                sleep(Duration::from_millis(5));
                assert!(Instant::now() < end, "not all were tried");
            }
            // One that ends is seen for a moment longer than it counts.
            assert!((1..=32).contains(&most), "{shell:?}: {most} threads for names");
            for server in client.servers() {
                let error = server.description.error.as_ref().expect("it was tried").to_string();
                assert!(error.starts_with("name resolution"), "{error}");
            }
            client.close();
            // Those that wait for the operating system.
            while threads("cenote-resolver") > 0 {
                sleep(Duration::from_millis(5));
                assert!(Instant::now() < end, "a thread has not ended");
            }
        }
    });
}

/// Fifty appear and disappear twenty times, and no thread with them.
fn servers_that_come_and_go() {
    let set = || ReplicaSet::primary("rs0");
    let settings = Settings { topology: Topology::ReplicaSet(set()), ..Settings::default() };
    let primary = Endpoint::start(settings, ListenOptions::default()).expect("it starts");
    let client = judged(&format!("mongodb://{}/?replicaSet=rs0", primary.address()));
    client.command("admin", &rawdoc! { "ping": 1 }).expect("a reply");
    let all = || fs::read_dir("/proc/self/task").expect("Linux says it").count();
    let before = all();
    for count in [50, 0].repeat(20) {
        // Nothing listens there.
        let others = (1..=count).map(|port| format!("127.0.0.1:{port}"));
        let hosts = [primary.address().to_string()].into_iter().chain(others).collect();
        let listed = Topology::ReplicaSet(ReplicaSet { hosts, ..set() });
        primary.with(|server, now| server.set_topology(now, listed));
        let end = Instant::now() + LONG;
        while client.servers().len() != count + 1 {
            assert!(Instant::now() < end, "{} servers, not {count}", client.servers().len());
        }
        // Those of the test before may end meanwhile.
        assert!(all() <= before, "{} threads, not {before}", all());
    }
    client.close();
}
