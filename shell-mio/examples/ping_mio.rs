//! A pool against a server: `cargo run -p cenote-mio --example ping_mio -- URI`.
//!
//! `cargo run --release --bin cenote -- endpoint --tls --auth app:pencil` prints a URI to use.

use std::error::Error;
use std::thread;

use cenote_mio::Pool;
use cenote_mio::bson::{Document, rawdoc};

fn main() -> Result<(), Box<dyn Error>> {
    let uri = std::env::args().nth(1).ok_or("usage: ping_mio URI")?;
    let pool = Pool::builder(&uri)?.on_event(|event| println!("  {event}")).build()?;
    // A new pool is paused until it is marked ready: by a monitor, or here without one.
    pool.ready();

    let work = |number: u32| {
        let mut connection = pool.check_out()?;
        let reply = Document::try_from(connection.command("admin", &rawdoc! { "ping": 1 })?)?;
        println!("thread {number} on connection {}: {reply}", connection.id());
        Ok::<_, Box<dyn Error + Send + Sync>>(())
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|number| scope.spawn(move || work(number))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("no panic"))
    })
    .map_err(|error| error.to_string())?;
    println!("{}", pool.snapshot());
    pool.close();
    Ok(())
}
