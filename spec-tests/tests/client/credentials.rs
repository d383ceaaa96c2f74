//! One client for each credential.

use bson::{RawBsonRef, rawdoc};
use cenote_core::client::Selector;
use cenote_endpoint::{Endpoint, ListenOptions, Settings, User};

use crate::shells::{Shell, on_all_runtimes};
use crate::world::World;

on_all_runtimes!(two_credentials_never_share_a_connection);

// AU-05, LN-02: a client for each credential. Their connections never mix.
fn two_credentials_never_share_a_connection(shell: Shell) {
    let users = vec![User::new("reports", "pencil"), User::new("orders", "eraser")];
    let settings = Settings { auth: true, users, ..Settings::default() };
    let endpoint = Endpoint::start(settings, ListenOptions::default()).expect("it starts");
    let address = endpoint.address();
    let clients = [("reports", "pencil"), ("orders", "eraser")].map(|(name, password)| {
        let uri = format!("mongodb://{name}:{password}@{address}/?maxPoolSize=2");
        (name, World::new(shell, &uri))
    });
    for _ in 0..10 {
        for (name, world) in &clients {
            let mut connection = world.check_out(&Selector::Primary);
            let reply = connection.command("admin", &rawdoc! { "connectionStatus": 1 });
            let reply = reply.expect("a reply");
            let info = reply.get_document("authInfo").expect("the authenticated users");
            let users = info.get_array("authenticatedUsers").expect("a list");
            let first = users.into_iter().flatten().next();
            let first = first.and_then(RawBsonRef::as_document).expect("a user");
            assert_eq!(first.get_str("user").expect("a name"), *name);
        }
    }
}
