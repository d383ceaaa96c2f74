//! Check out, ping, check in, over TCP or TLS, beside bare sockets that write and read the same
//! bytes. The server is a thread for each connection in the same process; all clients are on the
//! main thread, whose CPU time is the second column.

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use bson::rawdoc;
use cenote_tokio::{MongoConnector, Pool};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

use crate::bare_ping::NoPayload;
use crate::measure::{Column, Contestant, Row, Sample, cpu_time, nanoseconds};
use crate::server;
use crate::tls::{self, Tls};

const PINGS: u32 = 4_800;

pub(crate) fn row(
    name: &'static str,
    title: &'static str,
    tasks: u32,
    contestants: fn(u32) -> Vec<Contestant>,
) -> Row {
    Row::new(name, title, move || contestants(tasks)).with_columns(vec![
        Column { name: "ns", is_compared: true },
        Column { name: "CPU ns", is_compared: true },
    ])
}

/// Over TCP, on 8 connections.
pub(crate) fn plain(tasks: u32) -> Vec<Contestant> {
    let runtime = runtime();
    let address = server::serve();
    // More tasks than there are sockets would have to share: that is what a pool is for.
    let sockets = (0..tasks.min(8)).map(|_| runtime.block_on(NoPayload::connect(address)));
    let bare = bare(&runtime, sockets.collect());
    let uri = format!("mongodb://{address}/?directConnection=true&maxPoolSize=8");
    contestants(&runtime, tasks, bare, &uri)
}

/// Over TLS, on at most 100 connections.
pub(crate) fn secured(tasks: u32) -> Vec<Contestant> {
    let runtime = runtime();
    let Tls { address, file, client } = tls::serve();
    let sockets = (0..tasks.min(100)).map(|_| {
        runtime.block_on(async {
            let socket = TcpStream::connect(address).await.expect("the server listens");
            socket.set_nodelay(true).expect("TCP");
            let name = "localhost".try_into().expect("a name");
            NoPayload::over(client.connect(name, socket).await.expect("our certificate"))
        })
    });
    let bare = bare(&runtime, sockets.collect());
    let uri = format!(
        "mongodb://localhost:{}/?directConnection=true&maxPoolSize=100&tls=true&tlsCAFile={}",
        address.port(),
        file.path().display(),
    );
    contestants(&runtime, tasks, bare, &uri)
}

fn runtime() -> Arc<Runtime> {
    Arc::new(Builder::new_current_thread().enable_all().build().expect("a runtime"))
}

fn contestants(
    runtime: &Arc<Runtime>,
    tasks: u32,
    bare: Box<dyn FnMut() -> Sample>,
    uri: &str,
) -> Vec<Contestant> {
    let cenote = |options: &str| {
        let pool: Pool<MongoConnector> = runtime.block_on(async {
            let pool = Pool::connect_to(&format!("{uri}{options}")).expect("a pool");
            pool.ready();
            pool
        });
        on(runtime, tasks, move |pings| {
            let pool = pool.clone();
            async move {
                for _ in 0..pings {
                    ping(&pool).await;
                }
            }
        })
    };
    let all = vec![
        ("bare: the same bytes, a task for each socket", bare),
        ("cenote", cenote("")),
        ("cenote, timed", cenote("&maxIdleTimeMS=600000&waitQueueTimeoutMS=30000")),
    ];
    with_official(all, runtime, tasks, uri)
}

#[cfg(not(feature = "clients"))]
fn with_official(all: Vec<Contestant>, _: &Arc<Runtime>, _: u32, _: &str) -> Vec<Contestant> {
    all
}

#[cfg(feature = "clients")]
fn with_official(
    mut all: Vec<Contestant>,
    runtime: &Arc<Runtime>,
    tasks: u32,
    uri: &str,
) -> Vec<Contestant> {
    let client = runtime.block_on(mongodb::Client::with_uri_str(uri)).expect("a client");
    let admin = client.database("admin");
    let official = on(runtime, tasks, move |pings| {
        let admin = admin.clone();
        async move {
            for _ in 0..pings {
                let reply = admin.run_command(bson::doc! { "ping": 1 }).await;
                assert!(reply.is_ok_and(|reply| reply.get_f64("ok").is_ok_and(|ok| ok == 1.0)));
            }
        }
    });
    all.push(("official driver", official));
    all
}

/// A task for each socket.
fn bare(runtime: &Arc<Runtime>, sockets: Vec<NoPayload>) -> Box<dyn FnMut() -> Sample> {
    let tasks = u32::try_from(sockets.len()).expect("a few");
    let sockets = Arc::new(Mutex::new(sockets));
    on(runtime, tasks, move |pings| {
        let sockets = Arc::clone(&sockets);
        async move {
            let mut socket = sockets.lock().expect("no panic").pop().expect("one for each task");
            for _ in 0..pings {
                socket.ping().await;
            }
            sockets.lock().expect("no panic").push(socket);
        }
    })
}

async fn ping(pool: &Pool) {
    let mut connection = pool.check_out().await.expect("a connection");
    let reply = connection.command("admin", &rawdoc! { "ping": 1 }).await;
    assert!(reply.is_ok_and(|reply| reply.get_f64("ok").is_ok_and(|ok| ok == 1.0)));
}

fn on<F: Future<Output = ()> + Send + 'static>(
    runtime: &Arc<Runtime>,
    tasks: u32,
    work: impl Fn(u32) -> F + 'static,
) -> Box<dyn FnMut() -> Sample> {
    let runtime = Arc::clone(runtime);
    Box::new(move || {
        runtime.block_on(async {
            let (began, cpu) = (Instant::now(), cpu_time());
            let mut all = JoinSet::new();
            let each = PINGS / tasks;
            for _ in 0..tasks {
                all.spawn(work(each));
            }
            all.join_all().await;
            let pings = each * tasks;
            [began.elapsed(), cpu_time() - cpu].map(|time| nanoseconds(time / pings)).to_vec()
        })
    })
}
