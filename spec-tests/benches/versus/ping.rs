//! Check out, ping, check in, over plain TCP, beside bare sockets that write and read the same
//! bytes. The server is a thread for each connection in the same process; all clients are on the
//! main thread, whose CPU time is the second column.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use bson::rawdoc;
use cenote_tokio::{MongoConnector, Pool};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

use crate::bare_ping::NoPayload;
use crate::measure::{Column, Contestant, Row, Sample, cpu_time, nanoseconds};
use crate::server;

const PINGS: u32 = 4_800;
const CONNECTIONS: u32 = 8;

pub(crate) fn row(name: &'static str, title: &'static str, tasks: u32) -> Row {
    Row::new(name, title, move || contestants(tasks)).with_columns(vec![
        Column { name: "ns", is_compared: true },
        Column { name: "CPU ns", is_compared: true },
    ])
}

fn contestants(tasks: u32) -> Vec<Contestant> {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = Arc::new(runtime.expect("a runtime"));
    let address = server::serve();
    let plain = runtime.block_on(pool(address, ""));
    let timed = runtime.block_on(pool(address, "&maxIdleTimeMS=600000&waitQueueTimeoutMS=30000"));
    // More of them than sockets there are would have to share: that is what a pool is for.
    let sockets = tasks.min(CONNECTIONS);
    let bare = runtime.block_on(async {
        let mut bare = Vec::new();
        for _ in 0..sockets {
            bare.push(NoPayload::connect(address).await);
        }
        Arc::new(Mutex::new(bare))
    });
    let bare = on(&runtime, sockets, move |pings| {
        let bare = Arc::clone(&bare);
        async move {
            let mut socket = bare.lock().expect("no panic").pop().expect("one for each task");
            for _ in 0..pings {
                socket.ping().await;
            }
            bare.lock().expect("no panic").push(socket);
        }
    });
    let cenote = |pool: Pool| {
        on(&runtime, tasks, move |pings| {
            let pool = pool.clone();
            async move {
                for _ in 0..pings {
                    ping(&pool).await;
                }
            }
        })
    };
    vec![
        ("bare: the same bytes, a task for each socket", bare),
        ("cenote, events off, nothing timed", cenote(plain)),
        ("cenote, idle times and a 30 s limit", cenote(timed)),
    ]
}

/// Every connection is there.
async fn pool(address: SocketAddr, options: &str) -> Pool {
    let uri = format!("mongodb://{address}/?directConnection=true&maxPoolSize=8{options}");
    let pool: Pool<MongoConnector> = Pool::connect_to(&uri).expect("a pool");
    pool.ready();
    let mut all = Vec::new();
    for _ in 0..CONNECTIONS {
        all.push(pool.check_out().await.expect("a connection"));
    }
    drop(all);
    pool
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
            for _ in 0..tasks {
                all.spawn(work(PINGS / tasks));
            }
            all.join_all().await;
            [began.elapsed(), cpu_time() - cpu].map(|time| nanoseconds(time / PINGS)).to_vec()
        })
    })
}
