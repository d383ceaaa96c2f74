//! What `Debug` shows of pools, clients and their connections: what they belong to, and no secret.

use std::sync::{Arc, Mutex};

use cenote_core::client::Selector;
use cenote_core::pool::Purpose;
use cenote_core::uri::ConnectionString;
use cenote_endpoint::{Endpoint, Fault, ListenOptions, Settings, User};
use cenote_shell::client::{BuiltClient, ClientBuildError, ClientBuilder, ClientInner, ClientPlan};
use cenote_shell::runtime::CurrentRuntime;
use cenote_shell::trace::Recording;
use cenote_tokio::{Client, MongoConnector, Pool, Tokio};

use super::world::checked;
use crate::world::{at, set};

/// A client with a face of its own.
struct Embedded {
    of_plan: String,
    inner: ClientInner<Tokio>,
}

impl BuiltClient for Embedded {
    type Pool = Pool;

    fn build(plan: ClientPlan<Pool>) -> Result<Self, ClientBuildError> {
        let of_plan = format!("{plan:?}");
        Ok(Self { of_plan, inner: ClientInner::start(plan, Tokio::current())? })
    }
}

#[tokio::test]
async fn debug_output_names_the_server_and_no_secret() {
    let users = vec![User::new("app", "pencil")];
    let settings = Settings { auth: true, users, ..Settings::default() };
    let endpoint = Endpoint::start(settings, ListenOptions::default()).unwrap();
    let (uri, port) = (endpoint.uri(), endpoint.address().port().unwrap().to_string());
    assert!(uri.contains("pencil"));
    let folder = tempfile::tempdir().unwrap();
    let failure = Arc::new(Mutex::new(String::new()));
    let of_failure = Arc::clone(&failure);

    let builder = checked(Pool::builder(&uri).unwrap());
    let of_builder = format!("{builder:?}");
    let builder = builder.record(Recording::to_file(folder.path().join("pool.bson")));
    let builder = builder.on_failure(move |failure| {
        *of_failure.lock().expect("no panic") = format!("{failure:?}");
    });
    let pool = builder.build().unwrap();
    pool.ready();
    let mut connection = pool.check_out().await.unwrap();
    let (of_guard, of_connection) = (format!("{connection:?}"), format!("{:?}", *connection));
    let of_stream = format!("{:?}", connection.raw_stream().unwrap());
    drop(connection);
    set(&endpoint, at(Fault::Close, "isMaster"));
    pool.check_out().await.unwrap_err();
    endpoint.with(cenote_endpoint::Server::clear_faults);

    let client_builder = Client::builder(&uri).unwrap();
    let of_client_builder = format!("{client_builder:?}");
    let client = client_builder.build().unwrap();
    let pinned = client.pin(&Selector::Any, Purpose::Cursor).await.unwrap();
    let connector = MongoConnector::new(&ConnectionString::parse(&uri).unwrap()).unwrap();

    let embedded: Embedded = ClientBuilder::from_uri(&uri).unwrap().build().unwrap();
    let servers = embedded.inner.servers();
    let server = &servers[0];
    let of_pool_plan = format!("{:?}", Pool::builder(&uri).unwrap().into_plan());

    let failure = failure.lock().expect("no panic").clone();
    for (shown, name, part) in [
        (of_builder, "Builder", &*port),
        (format!("{pool:?}"), "Pool", &*port),
        (of_guard, "PooledConnection", &*port),
        (of_connection, "Connection", "description"),
        (of_stream, "RawStream", "is_over: false"),
        (failure, "Failure", &*port),
        (of_client_builder, "ClientBuilder", &*port),
        (format!("{client:?}"), "Client", "servers: 1"),
        (format!("{pinned:?}"), "Pinned", &*port),
        (embedded.of_plan, "ClientPlan", &*port),
        (of_pool_plan, "PoolPlan", &*port),
        (format!("{server:?}"), "Server", &*port),
        (format!("{:?}", embedded.inner), "ClientInner", "settings"),
        (format!("{connector:?}"), "MongoConnector", "settings: Settings { options"),
    ] {
        assert!(
            shown.starts_with(&format!("{name} {{")) && shown.contains(part),
            "{name}: {shown}"
        );
        assert!(!shown.contains("pencil"), "{name}: {shown}");
    }
}
