//! Connections that break at every byte, on real sockets.

mod every_byte;
mod idle;
mod itself;
mod venue;

use std::sync::Arc;
use std::thread;

use bson::rawdoc;
use cenote::proxy::{ConnectionFault, FaultProxy};
use cenote_core::error::{ConnectionError, OperationError, Stage};
use cenote_core::pool::CheckOutError;
use cenote_endpoint::Endpoint;

use self::every_byte::{Case, Conversation, LANES};
use self::venue::{Ear, endpoint, expect_no_socket, expect_rest, proxy};
use crate::shell::{AnyPool, Shell, on_all_runtimes, paused_pool};

on_all_runtimes!(broken_after_every_byte, fates_by_seed,);

struct Lane {
    proxy: FaultProxy,
    pool: Arc<dyn AnyPool>,
    ear: Ear,
}

impl Lane {
    fn new(shell: Shell, endpoint: &Endpoint, options: &str) -> Self {
        let (proxy, ear) = (proxy(endpoint), Ear::new());
        let uri = format!("{}&{options}", proxy.uri(&endpoint.uri()));
        let heard = ear.clone();
        let subscriber = move |event: &_, address: &Arc<_>| heard.hear(event, address);
        let pool = paused_pool(shell, &uri, Box::new(subscriber), None);
        pool.ready();
        Self { proxy, pool, ear }
    }

    fn ping(&self) -> Result<(), ConnectionError> {
        let mut connection = match self.pool.check_out() {
            Ok(connection) => connection,
            Err(error) => {
                let CheckOutError::EstablishFailed { cause } = error.error() else {
                    panic!("{error}")
                };
                // The message says where, and how far it came.
                assert_eq!(*error.address(), self.proxy.address());
                assert!(error.to_string().contains(&cause.stage().to_string()), "{error}");
                return Err(cause.clone());
            }
        };
        match connection.command("admin", &rawdoc! { "ping": 1 }) {
            Ok(_) => Ok(()),
            Err(OperationError::Connection(error)) => {
                assert_eq!(error.stage(), Stage::Operation, "{error}");
                Err(error)
            }
            Err(error) => panic!("{error}"),
        }
    }

    /// A caller that gets the fault, and the next one.
    fn live_through(&self, conversation: &Conversation, case: Case) {
        self.proxy.expect([ConnectionFault::cut(case.after, case.end)]);
        let error = self.ping().expect_err("it was broken");
        conversation.expect(case, error.stage());
        self.ping().unwrap_or_else(|error| panic!("after {case:?}: {error}"));
        expect_rest(&self.pool.snapshot(), 1, &format!("{case:?}"));
        self.renew(error);
    }

    /// From now on there are new connections only.
    fn renew(&self, cause: ConnectionError) {
        self.pool.clear(cause, false);
        self.pool.ready();
    }

    fn end(self) {
        self.pool.close();
        drop(self.pool);
        let counts = self.ear.at_the_end();
        assert_eq!((counts.asked, counts.created), (counts.answered, counts.closed));
        expect_no_socket(&self.proxy.address());
    }
}

fn unbroken(shell: Shell, endpoint: &Endpoint) -> Conversation {
    let lane = Lane::new(shell, endpoint, "maxPoolSize=1");
    lane.ping().expect("it has no fault");
    let passed = lane.proxy.passed(0).expect("a connection");
    lane.end();
    Conversation::new(passed)
}

fn broken_after_every_byte(shell: Shell) {
    let endpoint = endpoint();
    let conversation = unbroken(shell, &endpoint);
    thread::scope(|scope| {
        for number in 0..LANES {
            let lane = Lane::new(shell, &endpoint, "maxPoolSize=1");
            let conversation = &conversation;
            scope.spawn(move || {
                for case in conversation.cases(number) {
                    lane.live_through(conversation, case);
                }
                lane.end();
            });
        }
    });
}

/// Eight threads over three connections, each of which may be cut anywhere, be slow, or come in
/// pieces.
fn fates_by_seed(shell: Shell) {
    let endpoint = endpoint();
    let options = "maxPoolSize=3&connectTimeoutMS=1500&socketTimeoutMS=1500";
    let lane = Lane::new(shell, &endpoint, options);
    lane.proxy.draw(Some(7));
    let failed: usize = thread::scope(|scope| {
        let work = || (0..25).filter(|_| lane.ping().is_err()).count();
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(work)).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).sum()
    });
    assert!(failed > 0, "some of them met something");
    // All that is left is as it was drawn; what comes is as it should be.
    lane.proxy.draw(None);
    lane.renew(ConnectionError::network(Stage::Tcp, "all of them"));
    for _ in 0..8 {
        lane.ping().expect("all is well");
    }
    lane.end();
}
