//! A client that is stopped for some seconds, as by a container that is paused, a debugger or a virtual machine
//! that loses its processor: deadlines pass meanwhile, and the server is healthy.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;
use std::{env, io, thread};

use bson::rawdoc;
use cenote_core::client::Selector;

use crate::shells::Shell;
use crate::world::{World, standalone};

const URI: &str = "CENOTE_TEST_PAUSED_URI";
const SHELL: &str = "CENOTE_TEST_PAUSED_SHELL";

/// How often a client is stopped, and for how long.
const STOPS: usize = 8;
const STOPPED: Duration = Duration::from_secs(3);

/// All clients are stopped at the same time, because this takes so long.
// Reports GODRIVER-2577, meteor#13108, node-mongodb-native#4961: a function or a machine sleeps, and its first check clears the
// pool and ends what is in use.
#[test]
fn a_paused_client_does_not_blame_a_healthy_server() {
    if let (Ok(uri), Ok(shell)) = (env::var(URI), env::var(SHELL)) {
        let shells = [Shell::Tokio, Shell::Mio, Shell::Smol];
        let shell = shells.into_iter().find(|it| format!("{it:?}") == shell);
        return ping_until_end_of_input(shell.expect("a runtime"), &uri);
    }
    let endpoint = standalone();
    let uri = format!("{}?connectTimeoutMS=2000&heartbeatFrequencyMS=500", endpoint.uri());
    let clients = ["Tokio", "Mio", "Smol"].map(|shell| (shell, start(shell, &uri)));
    for _ in 0..STOPS {
        thread::sleep(Duration::from_millis(600));
        clients.iter().for_each(|(_, client)| signal("-STOP", client));
        thread::sleep(STOPPED);
        clients.iter().for_each(|(_, client)| signal("-CONT", client));
    }
    thread::sleep(Duration::from_secs(1));
    let outcomes = clients.map(|(shell, client)| (shell, end(client)));
    for (shell, printed) in &outcomes {
        assert!(printed.contains("failed 0, cleared 0,"), "{shell}: {printed}");
    }
}

/// Ends a client, and returns what it printed.
fn end(mut client: Child) -> String {
    drop(client.stdin.take());
    let mut printed = String::new();
    let mut output = client.stdout.take().expect("a pipe");
    output.read_to_string(&mut printed).expect("UTF-8");
    assert!(client.wait().expect("it ends").success(), "{printed}");
    printed
}

/// Repeats the test in a process that pings the server, and waits for its first reply.
fn start(shell: &str, uri: &str) -> Child {
    let mut child = Command::new(env::current_exe().expect("this test"));
    child.args(["paused::a_paused_client_does_not_blame_a_healthy_server", "--exact"]);
    child.arg("--nocapture").env(URI, uri).env(SHELL, shell);
    let mut child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it runs");
    let mut output = BufReader::with_capacity(1, child.stdout.take().expect("a pipe"));
    let mut line = String::new();
    while !line.contains("connected") {
        line.clear();
        assert_ne!(output.read_line(&mut line).expect("UTF-8"), 0, "it ended");
    }
    child.stdout = Some(output.into_inner());
    child
}

fn signal(signal: &str, process: &Child) {
    let sent = Command::new("kill").args([signal, &process.id().to_string()]).status();
    assert!(sent.expect("it runs").success());
}

fn ping_until_end_of_input(shell: Shell, uri: &str) {
    let world = World::new(shell, uri);
    world.ping();
    println!("connected");
    let (ends, served, failed) = (AtomicBool::new(false), AtomicU32::new(0), AtomicU32::new(0));
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !ends.load(Ordering::Relaxed) {
                    let outcome = match world.client.check_out(&Selector::Any) {
                        Ok(mut connection) => {
                            let reply = connection.command("admin", &rawdoc! { "ping": 1 });
                            reply.map(drop).map_err(|error| error.to_string())
                        }
                        Err(error) => Err(error.to_string()),
                    };
                    match outcome {
                        Ok(()) => served.fetch_add(1, Ordering::Relaxed),
                        Err(error) => {
                            println!("{error}");
                            failed.fetch_add(1, Ordering::Relaxed)
                        }
                    };
                    thread::sleep(Duration::from_millis(5));
                }
            });
        }
        io::stdin().read_to_end(&mut Vec::new()).expect("the end");
        ends.store(true, Ordering::Relaxed);
    });
    let (served, failed) = (served.into_inner(), failed.into_inner());
    let cleared = world.count("ConnectionPoolCleared");
    println!("failed {failed}, cleared {cleared}, served {served}");
}
