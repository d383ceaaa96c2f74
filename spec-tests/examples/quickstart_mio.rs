//! A pool without an async runtime, against the mock server in the same process:
//! `cargo run --release -p cenote --example quickstart_mio`.

use std::error::Error;
use std::thread;
use std::time::{Duration, Instant};

use cenote_endpoint::{Endpoint, ListenOptions, Settings, User};
use cenote_mio::bson::rawdoc;
use cenote_mio::{OperationOptions, Pool};

fn main() -> Result<(), Box<dyn Error>> {
    // A server with TLS and a login. Any MongoDB server will do.
    let users = vec![User::new("app", "pencil")];
    let settings = Settings { auth: true, users, ..Settings::default() };
    let endpoint = Endpoint::start(settings, ListenOptions::with_tls())?;

    let uri = format!("{}&maxPoolSize=2", endpoint.uri());
    let pool = Pool::builder(&uri)?.on_event(|event| println!("  {event}")).build()?;
    pool.ready(); // A pool begins paused. A driver's monitor says when the server is there.

    // Five threads, two connections: a thread that finds none waits for its turn.
    thread::scope(|scope| {
        for number in 0..5 {
            let pool = &pool;
            scope.spawn(move || {
                let document = rawdoc! { "_id": number, "said": "hello" };
                let documents: bson::RawArrayBuf = [document].into_iter().collect();
                pool.with_connection(|connection| {
                    let insert = rawdoc! { "insert": "greetings", "documents": documents };
                    connection.command("test", &insert)?;
                    Ok::<_, Box<dyn Error>>(())
                })
                .expect("an insert");
            });
        }
    });

    // With a limit for everything: its turn, the connection, the command.
    let deadline = Instant::now() + Duration::from_secs(5);
    let mut connection = pool.check_out_before(deadline)?;
    let options = OperationOptions::new().with_deadline(deadline);
    let reply = connection.command_with("test", &rawdoc! { "find": "greetings" }, options)?;
    let found = reply.get_document("cursor")?.get_array("firstBatch")?.into_iter().count();
    println!("{found} greetings, by {:?}", connection.description().mechanism);
    drop(connection); // Comes back.

    println!("{}", pool.snapshot());
    pool.close();
    Ok(())
}
