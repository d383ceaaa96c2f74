//! What `Debug` shows of pools, clients and their connections: what they belong to, and no secret.

use cenote_core::client::Selector;
use cenote_core::pool::Purpose;
use cenote_endpoint::{Settings, User};
use cenote_mio::{Client, PoolSource};

use super::world::pool;
use crate::world::tls;

#[test]
fn debug_output_names_the_server_and_no_secret() {
    let users = vec![User::new("app", "pencil")];
    let endpoint = tls(Settings { auth: true, users, ..Settings::default() });
    let (uri, port) = (endpoint.uri(), endpoint.address().port().unwrap().to_string());
    assert!(uri.contains("pencil"));
    let (pool, _events) = pool(&uri);
    let mut connection = pool.check_out().unwrap();
    let (of_guard, of_connection) = (format!("{connection:?}"), format!("{:?}", *connection));
    let of_stream = format!("{:?}", connection.raw_stream().unwrap());
    let client = Client::new(&uri).unwrap();
    let pinned = client.pin(&Selector::Any, Purpose::Cursor).unwrap();
    let poll = mio::Poll::new().unwrap();
    let builder = cenote_mio::Pool::builder(&uri).unwrap();
    let source = PoolSource::new(builder, poll.registry(), 0..2, || ()).unwrap();
    for (shown, name, part) in [
        (format!("{pool:?}"), "Pool", &*port),
        (of_guard, "PooledConnection", &*port),
        (of_connection, "Connection", "description"),
        (of_stream, "RawStream", "is_broken: false"),
        (format!("{client:?}"), "Client", "servers: 1"),
        (format!("{pinned:?}"), "Pinned", &*port),
        (format!("{source:?}"), "PoolSource", &*port),
    ] {
        let is_named = shown.starts_with(&format!("{name} {{"));
        assert!(is_named && shown.contains(part) && !shown.contains("pencil"), "{name}: {shown}");
    }
}
