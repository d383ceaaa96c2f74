//! A pool against a server: `cargo run -p cenote-tokio --example ping_tokio -- URI`.
//!
//! `cargo run --release --bin cenote -- endpoint --tls --auth app:pencil` prints a URI to use.

use cenote_tokio::Pool;
use cenote_tokio::bson::{Document, rawdoc};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let uri = std::env::args().nth(1).ok_or("usage: ping_tokio URI")?;
    let pool = Pool::builder(&uri)?.on_event(|event| println!("  {event}")).build()?;
    // A pool begins paused. A driver's monitor says when the server is there; here we just hope.
    pool.ready();

    let tasks: Vec<_> = (0..4)
        .map(|task| {
            let pool = pool.clone();
            tokio::spawn(async move {
                let mut connection = pool.check_out().await?;
                let reply = connection.command("admin", &rawdoc! { "ping": 1 }).await?;
                let reply = Document::try_from(reply)?;
                println!("task {task} on connection {}: {reply}", connection.id());
                Ok::<_, Box<dyn std::error::Error + Send + Sync>>(())
            })
        })
        .collect();
    for task in tasks {
        task.await?.map_err(|error| error.to_string())?;
    }
    println!("{}", pool.snapshot());
    pool.close().await;
    Ok(())
}
