//! Works with the official driver, whichever pool it has, and prints figures as one object of JSON.

mod events;

use std::env::args;
use std::error::Error;
use std::fs::{read_dir, read_to_string};
use std::time::{Duration, Instant};

use mongodb::bson::{Document, doc};
use mongodb::{Client, Database, options::ClientOptions};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use self::events::Events;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

const TASKS: u64 = 64;

#[tokio::main(worker_threads = 2)]
async fn main() -> Result<()> {
    let arguments: Vec<String> = args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let figures = match *arguments {
        ["work", uri, events] => work(uri, events).await?,
        ["chaos", uri, events, seconds] => chaos(uri, events, seconds.parse()?, 0).await?,
        ["chaos", uri, events, seconds, pause] => {
            chaos(uri, events, seconds.parse()?, pause.parse()?).await?
        }
        ["waiter", uri] => waiter(uri).await?,
        ["pings", uri, tasks, each] => pings(uri, tasks.parse()?, each.parse()?).await?,
        _ => return Err("work|chaos|waiter|pings URI …".into()),
    };
    println!("{figures}");
    Ok(())
}

/// Every task pings, inserts, and finds what it has inserted.
async fn work(uri: &str, events: &str) -> Result<Value> {
    const ROUNDS: u64 = 100;
    let events = Events::to_file(events)?;
    let client = client(uri, "maxPoolSize=10", Some(&events)).await?;
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let database = client.database("work");
        tasks.spawn(async move {
            let documents = database.collection::<Document>("documents");
            for round in 0..ROUNDS {
                ping(&database).await?;
                let document = doc! { "_id": format!("{task}-{round}"), "round": round as i64 };
                documents.insert_one(&document).await?;
                let found = documents.find_one(doc! { "_id": document.get_str("_id")? }).await?;
                if found.as_ref() != Some(&document) {
                    return Err(format!("inserted {document}, found {found:?}").into());
                }
            }
            Result::Ok(ROUNDS)
        });
    }
    let mut rounds = 0;
    while let Some(done) = tasks.join_next().await {
        rounds += done??;
    }
    client.shutdown().await;
    events.finish()?;
    Ok(json!({ "rounds": rounds }))
}

/// A third of the pings are given up after 0.1 to 3 ms, while connections are closed, handshakes refused and
/// held up, and pings answered with "shutdown in progress". After a ping each task pauses for `pause` ms on average.
async fn chaos(uri: &str, events: &str, seconds: u64, pause: u64) -> Result<Value> {
    let events = Events::to_file(events)?;
    let options = "maxPoolSize=8&appName=chaos&heartbeatFrequencyMS=500&connectTimeoutMS=1000";
    let client = client(uri, options, Some(&events)).await?;
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let database = client.database("admin");
        tasks.spawn(async move {
            let (mut done, mut failed, mut given_up) = (0, 0, 0);
            let mut random = 0x9E37_79B9_7F4A_7C15 ^ (task + 1);
            while Instant::now() < end {
                for shift in [13, 7, 17] {
                    random ^= if shift == 7 { random >> shift } else { random << shift };
                }
                let patience = match random % 3 {
                    0 => Duration::from_micros(100 + (random >> 32) % 2_900),
                    _ => Duration::from_secs(20),
                };
                match timeout(patience, ping(&database)).await {
                    Ok(Ok(())) => done += 1,
                    Ok(Err(_)) => failed += 1,
                    Err(_) => given_up += 1,
                }
                if pause > 0 {
                    sleep(Duration::from_millis((random >> 16) % (2 * pause))).await;
                }
            }
            [done, failed, given_up]
        });
    }
    inject(uri, end).await?;
    let mut sums = [0_u64; 3];
    while let Some(counts) = tasks.join_next().await {
        sums.iter_mut().zip(counts?).for_each(|(sum, count)| *sum += count);
    }
    let stopped = timeout(Duration::from_secs(20), client.shutdown()).await;
    stopped.map_err(|_| "the client does not shut down within 20 s")?;
    events.finish()?;
    let [done, failed, given_up] = sums;
    Ok(json!({ "done": done, "failed": failed, "given_up": given_up }))
}

/// Every 1.3 s another fault, for the application "chaos" and its monitor.
async fn inject(uri: &str, end: Instant) -> Result<()> {
    let client = client(uri, "", None).await?;
    let faults = [
        doc! { "failCommands": ["ping"], "closeConnection": true },
        doc! { "failCommands": ["hello", "isMaster", "ismaster"], "closeConnection": true },
        doc! { "failCommands": ["ping"], "errorCode": 91 },
        doc! { "failCommands": ["hello", "isMaster", "ismaster"], "blockConnection": true, "blockTimeMS": 4_000 },
    ];
    for fault in faults.iter().cycle() {
        sleep(Duration::from_millis(1_300)).await;
        if Instant::now() >= end {
            break;
        }
        let mut data = fault.clone();
        data.insert("appName", "chaos");
        fail_point(&client, 2, data).await?;
    }
    Ok(())
}

/// How long a ping waits for the one connection once it is free, behind 16 that gave up.
async fn waiter(uri: &str) -> Result<Value> {
    let client = client(uri, "maxPoolSize=1", None).await?;
    let database = client.database("admin");
    ping(&database).await?;
    let block = doc! { "failCommands": ["ping"], "blockConnection": true, "blockTimeMS": 1_000 };
    fail_point(&client, 1, block).await?;
    let holder = tokio::spawn({
        let database = database.clone();
        async move { ping(&database).await.map(|()| Instant::now()) }
    });
    sleep(Duration::from_millis(100)).await;
    let mut impatient = JoinSet::new();
    for _ in 0..16 {
        let database = database.clone();
        impatient.spawn(async move { timeout(Duration::from_millis(100), ping(&database)).await });
    }
    while let Some(outcome) = impatient.join_next().await {
        if outcome?.is_ok() {
            return Err("a ping that was to be given up has an outcome".into());
        }
    }
    ping(&database).await?;
    let free = holder.await??;
    Ok(json!({ "waited_ms": free.elapsed().as_secs_f64() * 1e3 }))
}

/// What a ping costs, in µs.
async fn pings(uri: &str, tasks: u64, each: u64) -> Result<Value> {
    let client = client(uri, "maxPoolSize=10", None).await?;
    let mut costs = Value::Null;
    // The first round connects and warms up.
    for each in [each / 10 + 1, each] {
        let (start, cpu) = (Instant::now(), cpu_time()?);
        let mut running = JoinSet::new();
        for _ in 0..tasks {
            let database = client.database("admin");
            running.spawn(async move {
                for _ in 0..each {
                    ping(&database).await?;
                }
                Result::Ok(())
            });
        }
        while let Some(outcome) = running.join_next().await {
            outcome??;
        }
        let of_one = |time: Duration| time.as_secs_f64() * 1e6 / (tasks * each) as f64;
        costs = json!({ "wall": of_one(start.elapsed()), "cpu": of_one(cpu_time()? - cpu) });
    }
    Ok(costs)
}

async fn ping(database: &Database) -> Result<()> {
    database.run_command(doc! { "ping": 1 }).await?;
    Ok(())
}

async fn fail_point(client: &Client, times: i32, data: Document) -> Result<()> {
    let mode = doc! { "times": times };
    let command = doc! { "configureFailPoint": "failCommand", "mode": mode, "data": data };
    client.database("admin").run_command(command).await?;
    Ok(())
}

async fn client(uri: &str, options: &str, events: Option<&Events>) -> Result<Client> {
    let separator = if uri.contains('?') { '&' } else { '?' };
    let mut options = ClientOptions::parse(format!("{uri}{separator}{options}")).await?;
    options.cmap_event_handler = events.map(Events::handler);
    Ok(Client::with_options(options)?)
}

/// Of all threads of this process, as Linux counts it.
fn cpu_time() -> Result<Duration> {
    let mut sum = 0;
    for thread in read_dir("/proc/self/task")? {
        let text = read_to_string(thread?.path().join("schedstat"))?;
        sum += text.split(' ').next().ok_or("no first number")?.parse::<u64>()?;
    }
    Ok(Duration::from_nanos(sum))
}
