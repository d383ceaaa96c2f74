//! Connections whose peer ends while the tasks of the runtime compute, so that it learns nothing of its sockets.

use std::thread;
use std::time::Duration;

use cenote_endpoint::{Ending, Endpoint, ListenAddress, ListenOptions, Settings};
use cenote_tokio::Pool;
use tokio::runtime::Builder;

use super::world::ping;
use crate::world::{plain, tls};

// Reports hyper#2136, hyper#3553, tokio#4730, moosestack#3698 (mended): a connection is used that the server closed while
// the task computed.
#[test]
fn a_connection_that_ended_while_its_task_computed_is_not_handed_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = ListenAddress::Unix { path: folder.path().join("server.sock") };
    let options = ListenOptions { place, ..ListenOptions::default() };
    let unix = Endpoint::start(Settings::default(), options).expect("it starts");
    for endpoint in [plain(), tls(Settings::default()), unix] {
        for ending in [Ending::Close, Ending::Fin, Ending::Reset] {
            let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                let pool = Pool::connect_to(&endpoint.uri()).expect("a pool");
                pool.ready();
                assert!(ping(&pool).await);
                endpoint.with(|server, now| server.break_connections(now, ending, None));
                thread::sleep(Duration::from_millis(500));
                assert!(ping(&pool).await);
                let seen = pool.snapshot();
                assert_eq!((seen.connections_created, seen.generation), (2, 0), "{ending:?}");
                pool.close().await;
            });
        }
    }
}
