//! Check out, ping, check in, over TCP or TLS, beside bare sockets that write and read the same
//! bytes. The server is another process; all clients are on the main thread, whose CPU time is the
//! second column.

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use bson::{RawDocumentBuf, rawdoc};
use cenote_tokio::{Client, Pool};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

use crate::bare_ping::NoPayload;
use crate::measure::{Column, Contestant, Row, Sample, cpu_time, nanoseconds};
use crate::{server, tls};

/// Of a round, all tasks together.
const PINGS: u32 = 4_800;

/// What a round does.
#[derive(Clone, Copy)]
pub(crate) struct Load {
    tasks: u32,
    /// Commands of each task.
    each: u32,
    /// So many documents of 64 bytes are in each reply; with none the command is a ping.
    documents: i32,
}

impl Load {
    fn command(self) -> RawDocumentBuf {
        if self.documents == 0 {
            return rawdoc! { "ping": 1 };
        }
        rawdoc! { "batch": self.documents }
    }

    fn bare(self, socket: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) -> NoPayload {
        NoPayload::over(socket, &self.command(), server::reply_length(self.documents))
    }
}

pub(crate) fn row(
    name: &'static str,
    title: &'static str,
    tasks: u32,
    contestants: fn(Load) -> Vec<Contestant>,
) -> Row {
    row_of(name, title, Load { tasks, each: PINGS / tasks, documents: 0 }, contestants)
}

/// Replies with so many documents of 64 bytes, to one task.
pub(crate) fn replies(name: &'static str, title: &'static str, documents: i32, each: u32) -> Row {
    row_of(name, title, Load { tasks: 1, each, documents }, plain)
}

fn row_of(
    name: &'static str,
    title: &'static str,
    load: Load,
    contestants: fn(Load) -> Vec<Contestant>,
) -> Row {
    let units = load.each * load.tasks;
    let columns = vec![
        Column { name: "ns", is_compared: true },
        Column { name: "CPU ns", is_compared: true },
    ];
    Row::new(name, title, move || contestants(load)).with_columns(columns).counted_in(units)
}

/// Over TCP, on 8 connections.
pub(crate) fn plain(load: Load) -> Vec<Contestant> {
    let runtime = runtime();
    let (address, _) = server::start("tcp");
    // More tasks than there are sockets would have to share: that is what a pool is for.
    let sockets =
        (0..load.tasks.min(8)).map(|_| load.bare(runtime.block_on(connect(address.port()))));
    let bare = bare(&runtime, sockets.collect(), load);
    contestants(load, bare, &format!("mongodb://{address}/?directConnection=true&maxPoolSize=8"))
}

/// Over TLS, on at most 100 connections.
pub(crate) fn secured(load: Load) -> Vec<Contestant> {
    let runtime = runtime();
    let (address, certificate) = server::start("tls");
    let client = tls::connector(&certificate);
    let sockets = (0..load.tasks.min(100)).map(|_| {
        runtime.block_on(async {
            let name = "localhost".try_into().expect("a name");
            let socket = client.connect(name, connect(address.port()).await).await;
            load.bare(socket.expect("our certificate"))
        })
    });
    let bare = bare(&runtime, sockets.collect(), load);
    let uri = format!(
        "mongodb://localhost:{}/?directConnection=true&maxPoolSize=100&tls=true&tlsCAFile={}",
        address.port(),
        certificate.display(),
    );
    contestants(load, bare, &uri)
}

async fn connect(port: u16) -> TcpStream {
    let socket = TcpStream::connect(("127.0.0.1", port)).await.expect("the server listens");
    socket.set_nodelay(true).expect("TCP");
    socket
}

fn runtime() -> Arc<Runtime> {
    Arc::new(Builder::new_current_thread().enable_all().build().expect("a runtime"))
}

/// Each on a runtime of its own, where nothing of another one runs.
fn contestants(load: Load, bare: Box<dyn FnMut() -> Sample>, uri: &str) -> Vec<Contestant> {
    let all = vec![
        ("bare: the same bytes, a task for each socket", bare),
        ("cenote, connections held", held(uri, load)),
        ("cenote", pooled(uri, load)),
        (
            "cenote, timed",
            pooled(&format!("{uri}&maxIdleTimeMS=600000&waitQueueTimeoutMS=30000"), load),
        ),
        ("cenote, client", through_client(uri, load)),
    ];
    with_official(all, load, uri)
}

fn pool(runtime: &Runtime, uri: &str) -> Pool {
    runtime.block_on(async {
        let pool = Pool::connect_to(uri).expect("a pool");
        pool.ready();
        pool
    })
}

/// A task keeps its connection, and more tasks than there are connections take turns.
fn held(uri: &str, load: Load) -> Box<dyn FnMut() -> Sample> {
    let runtime = runtime();
    let pool = pool(&runtime, uri);
    on(runtime, load, move |load| {
        let pool = pool.clone();
        async move {
            let command = load.command();
            let mut connection = pool.check_out().await.expect("a connection");
            for _ in 0..load.each {
                connection.command("admin", &command).await.expect("a reply");
            }
        }
    })
}

fn pooled(uri: &str, load: Load) -> Box<dyn FnMut() -> Sample> {
    let runtime = runtime();
    let pool = pool(&runtime, uri);
    on(runtime, load, move |load| {
        let pool = pool.clone();
        async move {
            let command = load.command();
            for _ in 0..load.each {
                let mut connection = pool.check_out().await.expect("a connection");
                connection.command("admin", &command).await.expect("a reply");
            }
        }
    })
}

fn through_client(uri: &str, load: Load) -> Box<dyn FnMut() -> Sample> {
    let runtime = runtime();
    let client = runtime.block_on(async { Client::new(uri).expect("a client") });
    on(runtime, load, move |load| {
        let client = client.clone();
        async move {
            let command = load.command();
            for _ in 0..load.each {
                client.command("admin", &command).await.expect("a reply");
            }
        }
    })
}

#[cfg(not(feature = "clients"))]
fn with_official(all: Vec<Contestant>, _: Load, _: &str) -> Vec<Contestant> {
    all
}

#[cfg(feature = "clients")]
fn with_official(mut all: Vec<Contestant>, load: Load, uri: &str) -> Vec<Contestant> {
    let runtime = runtime();
    let client = runtime.block_on(mongodb::Client::with_uri_str(uri)).expect("a client");
    let admin = client.database("admin");
    let official = on(runtime, load, move |load| {
        let admin = admin.clone();
        async move {
            let command = bson::Document::try_from(load.command()).expect("a command");
            for _ in 0..load.each {
                admin.run_command(command.clone()).await.expect("a reply");
            }
        }
    });
    all.push(("official driver", official));
    all
}

/// A task for each socket.
fn bare(runtime: &Arc<Runtime>, sockets: Vec<NoPayload>, load: Load) -> Box<dyn FnMut() -> Sample> {
    let tasks = u32::try_from(sockets.len()).expect("a few");
    let load = Load { tasks, each: load.each * load.tasks / tasks, ..load };
    let sockets = Arc::new(Mutex::new(sockets));
    on(Arc::clone(runtime), load, move |load| {
        let sockets = Arc::clone(&sockets);
        async move {
            let mut socket = sockets.lock().expect("no panic").pop().expect("one for each task");
            for _ in 0..load.each {
                socket.ping().await;
            }
            sockets.lock().expect("no panic").push(socket);
        }
    })
}

fn on<F: Future<Output = ()> + Send + 'static>(
    runtime: Arc<Runtime>,
    load: Load,
    work: impl Fn(Load) -> F + 'static,
) -> Box<dyn FnMut() -> Sample> {
    Box::new(move || {
        runtime.block_on(async {
            let (began, cpu) = (Instant::now(), cpu_time());
            let mut all = JoinSet::new();
            for _ in 0..load.tasks {
                all.spawn(work(load));
            }
            all.join_all().await;
            let pings = load.each * load.tasks;
            [began.elapsed(), cpu_time() - cpu].map(|time| nanoseconds(time / pings)).to_vec()
        })
    })
}
