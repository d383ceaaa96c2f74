//! Pools in six situations, with their metrics for Prometheus:
//!
//! ```text
//! cargo run -p cenote-shell --example prometheus -- 127.0.0.1:9464
//! ```
//!
//! `.ci/metrics` tries the dashboard and the alerts of `docs/metrics` with it.

use std::error::Error;
use std::time::Duration;

use bson::rawdoc;
use cenote_core::error::{ConnectionError, Stage};
use cenote_endpoint::{Endpoint, Fault, ListenOptions, Script, Settings};
use cenote_shell::metrics::Metrics;
use cenote_tokio::Pool;
use opentelemetry::metrics::{Meter, MeterProvider};
use opentelemetry_sdk::metrics::SdkMeterProvider;
use prometheus::{Registry, TextEncoder};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;

type AnyError = Box<dyn Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), AnyError> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:9464".to_owned());
    let registry = Registry::new();
    let exporter = opentelemetry_prometheus::exporter().with_registry(registry.clone()).build()?;
    let provider = SdkMeterProvider::builder().with_reader(exporter).build();
    let meter = provider.meter("example");

    let good = Endpoint::start(Settings::default(), ListenOptions::default())?;
    let scripts = vec![Script::new(Fault::Reset).at_command("isMaster", 0)];
    let resets =
        Endpoint::start(Settings { scripts, ..Settings::default() }, ListenOptions::default())?;
    let slow = Endpoint::start(Settings::default(), ListenOptions::default())?;
    let slow_hello = rawdoc! {
        "configureFailPoint": "failCommand",
        "mode": "alwaysOn",
        "data": { "failCommands": ["isMaster", "hello"], "blockConnection": true, "blockTimeMS": 1100 },
    };
    slow.with(|server, _| server.set_fail_point(&slow_hello))?;

    let calm = pool("calm", &good, "maxPoolSize=10", &meter)?;
    let leak = pool("leak", &good, "maxPoolSize=10", &meter)?;
    let small = pool("small", &good, "maxPoolSize=1&waitQueueTimeoutMS=3000", &meter)?;
    let cleared = pool("cleared", &good, "maxPoolSize=10", &meter)?;
    let refused = pool("refused", &resets, "maxPoolSize=10", &meter)?;
    let opening_slow = pool("slow", &slow, "maxPoolSize=10", &meter)?;

    for pool in [&calm, &leak, &cleared, &refused] {
        tokio::spawn(work(pool.clone(), Duration::from_millis(5)));
    }
    for _ in 0..6 {
        tokio::spawn(work(small.clone(), Duration::from_millis(1500)));
    }
    tokio::spawn(clear_often(cleared));
    tokio::spawn(open_always(opening_slow));
    let leaked = leak.check_out().await?;

    let listener = TcpListener::bind(&address).await?;
    println!("http://{}/metrics", listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        if let Err(error) = answer(stream, &registry).await {
            eprintln!("{error}; connection {} is still out", leaked.id());
        }
    }
}

fn pool(name: &str, server: &Endpoint, options: &str, meter: &Meter) -> Result<Pool, AnyError> {
    let uri = format!("{}/?{options}", server.uri().trim_end_matches('/'));
    let metrics = Metrics::new(meter.clone()).pool_name(name);
    let pool = Pool::builder(&uri)?.metrics(metrics).build()?;
    pool.ready();
    Ok(pool)
}

/// Uses connections for that long.
async fn work(pool: Pool, time: Duration) {
    loop {
        if let Ok(connection) = pool.check_out().await {
            sleep(time).await;
            drop(connection);
        }
        sleep(Duration::from_millis(20)).await;
    }
}

/// As the monitor of a server that comes and goes.
async fn clear_often(pool: Pool) {
    loop {
        sleep(Duration::from_millis(300)).await;
        pool.clear(ConnectionError::network(Stage::Operation, "the server is gone"), false);
        pool.ready();
    }
}

/// Uses each connection once.
async fn open_always(pool: Pool) {
    loop {
        if let Ok(mut connection) = pool.check_out().await {
            let reason = "not used again";
            connection.mark_errored(ConnectionError::protocol(Stage::Operation, reason));
        }
    }
}

/// Whatever is asked for, the answer is the metrics.
async fn answer(mut stream: TcpStream, registry: &Registry) -> Result<(), AnyError> {
    let mut head = BufReader::new(&mut stream).lines();
    while head.next_line().await?.is_some_and(|line| !line.is_empty()) {}
    let metrics = TextEncoder::new().encode_to_string(&registry.gather())?;
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nConnection: close";
    let answer = format!("{head}\r\nContent-Length: {}\r\n\r\n{metrics}", metrics.len());
    stream.write_all(answer.as_bytes()).await?;
    Ok(())
}
