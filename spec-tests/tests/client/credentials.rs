//! Who logs in as whom.

use bson::{RawBsonRef, rawdoc};
use cenote::endpoint::{Endpoint, ListenOptions, Settings, User};
use cenote_tokio::{ClientError, Selector};

use crate::world::World;

/// LN-02: a client for each credential. Their connections never mix, whoever is in a hurry.
#[tokio::test]
async fn two_credentials_never_share_a_connection() {
    let users = vec![User::new("reports", "pencil"), User::new("orders", "eraser")];
    let settings = Settings { auth: true, users, ..Settings::default() };
    let endpoint = Endpoint::start(settings, ListenOptions::default()).expect("it starts");
    let address = endpoint.address();
    let clients = [("reports", "pencil"), ("orders", "eraser")].map(|(name, password)| {
        let world = World::new(&format!("mongodb://{name}:{password}@{address}/?maxPoolSize=2"));
        (name, world)
    });
    for _ in 0..10 {
        for (name, world) in &clients {
            let user = world.client.with_connection(&Selector::Primary, async |connection| {
                let status = rawdoc! { "connectionStatus": 1 };
                let reply = connection.command("admin", &status).await?;
                let info = reply.get_document("authInfo").expect("of who has logged in");
                let users = info.get_array("authenticatedUsers").expect("a list");
                let first = users.into_iter().flatten().next();
                let first = first.and_then(RawBsonRef::as_document).expect("a user");
                Ok::<_, ClientError>(first.get_str("user").expect("a name").to_owned())
            });
            assert_eq!(user.await.expect("a reply"), *name);
        }
    }
}
