//! Connections that break at every byte, on real sockets.

mod every_byte;
mod idle;
mod itself;
mod venue;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::thread;

use bson::rawdoc;
use cenote::proxy::{ConnectionFault, End, FaultProxy};
use cenote_core::error::{ConnectionError, OperationError, Stage};
use cenote_core::pool::CheckOutError;
use cenote_endpoint::Endpoint;

use self::every_byte::{Case, Conversation, LANES};
use self::venue::{Ear, endpoint, expect_no_socket, expect_rest, proxy};
use crate::shell::{AnyPool, Shell, on_all_runtimes, paused_pool};

on_all_runtimes!(
    broken_after_every_byte,
    silent_in_every_message,
    fates_by_seed,
    accepted_backwards,
    cut_and_mended,
);

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

    /// On a busy machine the limit may pass although neither side is silent. A pool that hangs does so
    /// each time.
    fn patient_ping(&self) -> Result<(), ConnectionError> {
        for _ in 0..10 {
            match self.ping() {
                Err(error) if error.is_timeout() => {}
                outcome => return outcome,
            }
        }
        self.ping()
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

fn silent_in_every_message(shell: Shell) {
    let endpoint = endpoint();
    let conversation = unbroken(shell, &endpoint);
    thread::scope(|scope| {
        for case in conversation.silences() {
            // Long enough for a busy machine to come as far as the silence.
            let options = "maxPoolSize=1&connectTimeoutMS=4000&socketTimeoutMS=4000";
            let lane = Lane::new(shell, &endpoint, options);
            let conversation = &conversation;
            scope.spawn(move || {
                // The first login computes, which is not to count.
                lane.patient_ping().expect("it has no fault");
                lane.renew(ConnectionError::network(Stage::Tcp, "it was used"));
                lane.proxy.expect([ConnectionFault::cut(case.after, End::Silence)]);
                let error = lane.ping().expect_err("there is no reply");
                assert!(error.is_timeout(), "{case:?}: {error}");
                conversation.expect(case, error.stage());
                lane.patient_ping().unwrap_or_else(|error| panic!("after {case:?}: {error}"));
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

/// The server accepts them backwards, and each gets its own.
fn accepted_backwards(shell: Shell) {
    let endpoint = endpoint();
    let lane = Lane::new(shell, &endpoint, "maxPoolSize=4&maxConnecting=4");
    lane.proxy.reorder(4);
    let numbers = Mutex::new(BTreeSet::new());
    let all_have_one = std::sync::Barrier::new(4);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut connection = lane.pool.check_out().expect("a connection");
                let reply = connection.command("admin", &rawdoc! { "ping": 1 });
                reply.expect("a reply");
                let number = connection.description().connection_id.expect("servers count");
                numbers.lock().expect("no panic").insert(number);
                all_have_one.wait();
            });
        }
    });
    assert_eq!(lane.proxy.connections(), 4);
    assert_eq!(numbers.into_inner().expect("no panic").len(), 4, "each has its own");
    lane.end();
}

/// No connection is closed, and bytes in flight arrive later.
fn cut_and_mended(shell: Shell) {
    let endpoint = endpoint();
    let [lane, other] = [(); 2].map(|()| Lane::new(shell, &endpoint, "maxPoolSize=2"));
    lane.ping().expect("all is well");
    lane.proxy.cut();
    thread::scope(|scope| {
        let held_up = scope.spawn(|| lane.ping());
        for _ in 0..10 {
            other.ping().expect("there it is not cut");
        }
        assert!(!held_up.is_finished(), "others have asked ten times meanwhile");
        lane.proxy.mend();
        held_up.join().expect("no panic").expect("nothing was lost");
    });
    lane.end();
    other.end();
}
