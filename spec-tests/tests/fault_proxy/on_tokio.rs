//! The tokio shell.

use std::collections::BTreeSet;
use std::sync::Arc;

use bson::rawdoc;
use cenote::proxy::{ConnectionFault, End, FaultProxy};
use cenote_core::error::{ConnectionError, OperationError, Stage};
use cenote_core::pool::CheckOutError;
use cenote_endpoint::Endpoint;
use cenote_tokio::Pool;
use tokio::task::JoinSet;

use crate::every_byte::{Case, Conversation, LANES};
use crate::venue::{Ear, endpoint, expect_no_socket, expect_rest, proxy};

struct Lane {
    proxy: FaultProxy,
    pool: Pool,
    ear: Ear,
}

impl Lane {
    fn new(endpoint: &Endpoint, options: &str) -> Self {
        let (proxy, ear) = (proxy(endpoint), Ear::new());
        let uri = format!("{}&{options}", proxy.uri(&endpoint.uri()));
        let heard = ear.clone();
        let builder = Pool::builder(&uri).expect("a connection string");
        let builder = builder.on_event(move |told| heard.hear(&told.event, &told.address));
        let pool = builder.build().expect("good options");
        pool.ready();
        Self { proxy, pool, ear }
    }

    async fn ping(&self) -> Result<(), ConnectionError> {
        let mut connection = match self.pool.check_out().await {
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
        match connection.command("admin", &rawdoc! { "ping": 1 }).await {
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
    async fn patient_ping(&self) -> Result<(), ConnectionError> {
        for _ in 0..10 {
            match self.ping().await {
                Err(error) if error.is_timeout() => {}
                outcome => return outcome,
            }
        }
        self.ping().await
    }

    /// A caller that gets the fault, and the next one.
    async fn live_through(&self, conversation: &Conversation, case: Case) {
        self.proxy.expect([ConnectionFault::cut(case.after, case.end)]);
        let error = self.ping().await.expect_err("it was broken");
        conversation.expect(case, error.stage());
        self.ping().await.unwrap_or_else(|error| panic!("after {case:?}: {error}"));
        expect_rest(&self.pool.snapshot(), 1, &format!("{case:?}"));
        self.renew(error);
    }

    /// From now on there are new connections only.
    fn renew(&self, cause: ConnectionError) {
        self.pool.clear(cause, false);
        self.pool.ready();
    }

    async fn end(self) {
        self.pool.close().await;
        drop(self.pool);
        let counts = self.ear.at_the_end();
        assert_eq!((counts.asked, counts.created), (counts.answered, counts.closed));
        expect_no_socket(&self.proxy.address()).await;
    }
}

async fn unbroken(endpoint: &Endpoint) -> Conversation {
    let lane = Lane::new(endpoint, "maxPoolSize=1");
    lane.ping().await.expect("it has no fault");
    let passed = lane.proxy.passed(0).expect("a connection");
    lane.end().await;
    Conversation::new(passed)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn broken_after_every_byte() {
    let endpoint = endpoint();
    let conversation = unbroken(&endpoint).await;
    let mut lanes = JoinSet::new();
    for number in 0..LANES {
        let lane = Lane::new(&endpoint, "maxPoolSize=1");
        let conversation = conversation.clone();
        lanes.spawn(async move {
            for case in conversation.cases(number) {
                lane.live_through(&conversation, case).await;
            }
            lane.end().await;
        });
    }
    while let Some(ended) = lanes.join_next().await {
        ended.expect("no case has failed");
    }
}

#[tokio::test]
async fn silent_in_every_message() {
    let endpoint = endpoint();
    let conversation = unbroken(&endpoint).await;
    let mut lanes = JoinSet::new();
    for case in conversation.silences() {
        // Long enough for a busy machine to come as far as the silence.
        let options = "maxPoolSize=1&connectTimeoutMS=4000&socketTimeoutMS=4000";
        let lane = Lane::new(&endpoint, options);
        let conversation = conversation.clone();
        lanes.spawn(async move {
            // The first login computes, which is not to count.
            lane.patient_ping().await.expect("it has no fault");
            lane.renew(ConnectionError::network(Stage::Tcp, "it was used"));
            lane.proxy.expect([ConnectionFault::cut(case.after, End::Silence)]);
            let error = lane.ping().await.expect_err("there is no reply");
            assert!(error.is_timeout(), "{case:?}: {error}");
            conversation.expect(case, error.stage());
            lane.patient_ping().await.unwrap_or_else(|error| panic!("after {case:?}: {error}"));
            lane.end().await;
        });
    }
    while let Some(ended) = lanes.join_next().await {
        ended.expect("no case has failed");
    }
}

/// Eight tasks over three connections, each of which may be cut anywhere, be slow, or come in pieces.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fates_by_seed() {
    let endpoint = endpoint();
    let options = "maxPoolSize=3&connectTimeoutMS=500&socketTimeoutMS=500";
    let lane = Arc::new(Lane::new(&endpoint, options));
    lane.proxy.draw(Some(7));
    let mut tasks = JoinSet::new();
    for _ in 0..8 {
        let lane = Arc::clone(&lane);
        tasks.spawn(async move {
            let mut failed = 0;
            for _ in 0..25 {
                failed += u32::from(lane.ping().await.is_err());
            }
            failed
        });
    }
    let failed: u32 = tasks.join_all().await.into_iter().sum();
    assert!(failed > 0, "some of them met something");
    // All that is left is as it was drawn; what comes is as it should be.
    lane.proxy.draw(None);
    lane.renew(ConnectionError::network(Stage::Tcp, "all of them"));
    for _ in 0..8 {
        lane.ping().await.expect("all is well");
    }
    let lane = Arc::into_inner(lane).expect("all other handles are dropped");
    lane.end().await;
}

/// The server accepts them backwards, and each gets its own.
#[tokio::test]
async fn accepted_backwards() {
    let endpoint = endpoint();
    let lane = Lane::new(&endpoint, "maxPoolSize=4&maxConnecting=4");
    lane.proxy.reorder(4);
    let number = async || {
        let mut connection = lane.pool.check_out().await.expect("a connection");
        let reply = connection.command("admin", &rawdoc! { "ping": 1 }).await;
        reply.expect("a reply");
        connection.description().connection_id.expect("servers count")
    };
    let (a, b, c, d) = tokio::join!(number(), number(), number(), number());
    assert_eq!(BTreeSet::from([a, b, c, d]).len(), 4, "each has its own");
    lane.end().await;
}

/// No connection is closed, and bytes in flight arrive later.
#[tokio::test]
async fn cut_and_mended() {
    let endpoint = endpoint();
    let [lane, other] = [(); 2].map(|()| Arc::new(Lane::new(&endpoint, "maxPoolSize=2")));
    lane.ping().await.expect("all is well");
    lane.proxy.cut();
    let held_up = Arc::clone(&lane);
    let held_up = tokio::spawn(async move { held_up.ping().await });
    for _ in 0..10 {
        other.ping().await.expect("there it is not cut");
    }
    assert!(!held_up.is_finished(), "others have asked ten times meanwhile");
    lane.proxy.mend();
    held_up.await.expect("no panic").expect("nothing was lost");
    for lane in [lane, other] {
        Arc::into_inner(lane).expect("all other handles are dropped").end().await;
    }
}
