//! The pool in one minute: `cargo run --release -p cenote --example quickstart_tokio`.

use cenote_endpoint::{Endpoint, ListenOptions, Settings, User};
use cenote_tokio::Pool;
use cenote_tokio::bson::{Document, rawdoc};

// On one thread, so that what we print and what the pool tells come in their order.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A mock server in this process, with TLS and one user and required authentication.
    let users = vec![User::new("app", "pencil")];
    let settings = Settings { auth: true, users, ..Settings::default() };
    let server = Endpoint::start(settings, ListenOptions::with_tls())?;

    // A pool, as a connection string says. It tells what it does.
    let uri = format!("{}&maxPoolSize=10&compressors=zstd", server.uri());
    let pool = Pool::builder(&uri)?.on_event(|event| println!("  event: {event}")).build()?;

    // It begins paused. A monitor would say when the server is there; here we know.
    pool.ready();

    // A connection: connected, encrypted, authenticated. Requests are served in order.
    let mut connection = pool.check_out().await?;
    println!("connection {} to {}", connection.id(), pool.address());

    let reply = connection.command("admin", &rawdoc! { "ping": 1 }).await?;
    println!("ping: {}", Document::try_from(reply)?);

    let birds = rawdoc! { "insert": "birds", "documents": [{ "_id": "owl" }, { "_id": "kiwi" }] };
    let reply = connection.command("zoo", &birds).await?;
    println!("insert: {}", Document::try_from(reply)?);

    let reply = connection.command("zoo", &rawdoc! { "find": "birds" }).await?;
    println!("find: {}", Document::try_from(reply)?);

    // It returns to the pool when it is dropped, and serves the next request.
    drop(connection);
    println!("{}", pool.snapshot());

    // Until everything has come home. No socket is left then.
    pool.close().await;
    println!("{}", pool.snapshot());
    Ok(())
}
