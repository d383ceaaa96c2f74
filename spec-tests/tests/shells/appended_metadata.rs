//! What a library that wraps a pool tells servers of itself: the handshake's prose tests about appended
//! metadata, on both shells. A clear has the next connection be a new one.

use bson::{RawDocumentBuf, rawdoc};
use cenote_check::EventGuard;
use cenote_core::connect::DriverInfo;
use cenote_core::error::{ConnectionError, Stage};
use cenote_endpoint::{Endpoint, ListenOptions, Settings};

/// A pool of one shell, as far as these tests use it.
trait Wrapped {
    fn append(&self, driver: DriverInfo) -> bool;
    fn ping(&self);
    fn renew(&self);
}

struct OnTokio(cenote_tokio::Pool, tokio::runtime::Runtime);

impl Wrapped for OnTokio {
    fn append(&self, driver: DriverInfo) -> bool {
        self.0.append_metadata(driver)
    }

    fn ping(&self) {
        self.1.block_on(async {
            let mut connection = self.0.check_out().await.expect("a connection");
            connection.command("admin", &rawdoc! { "ping": 1 }).await.expect("a reply");
        });
    }

    fn renew(&self) {
        let _inside = self.1.enter();
        self.0.clear(cause(), false);
        self.0.ready();
    }
}

impl Wrapped for cenote_mio::Pool {
    fn append(&self, driver: DriverInfo) -> bool {
        self.append_metadata(driver)
    }

    fn ping(&self) {
        let mut connection = self.check_out().expect("a connection");
        connection.command("admin", &rawdoc! { "ping": 1 }).expect("a reply");
    }

    fn renew(&self) {
        self.clear(cause(), false);
        self.ready();
    }
}

fn cause() -> ConnectionError {
    ConnectionError::network(Stage::Operation, "cleared by the test")
}

fn driver(name: &str, version: Option<&str>, platform: Option<&str>) -> DriverInfo {
    DriverInfo::new(name, version, platform).expect("nothing is wrong with it")
}

/// The driver's name and version, and the platform, as the server was told last.
fn told(endpoint: &Endpoint) -> [String; 3] {
    let client: Option<RawDocumentBuf> =
        endpoint.with(|server, _now| server.statistics().last_client.clone());
    let client = client.expect("a client sent its metadata");
    let driver = client.get_document("driver").expect("there is a driver");
    let of = |text: &str| text.to_owned();
    [
        of(driver.get_str("name").expect("a name")),
        of(driver.get_str("version").expect("a version")),
        of(client.get_str("platform").expect("a platform")),
    ]
}

fn on_both_shells(test: impl Fn(&Endpoint, &dyn Wrapped)) {
    let start = || Endpoint::start(Settings::default(), ListenOptions::default());
    let endpoint = start().expect("a free port");
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.expect("a runtime");
    let inside = runtime.enter();
    let builder = cenote_tokio::Pool::builder(&endpoint.uri()).expect("a connection string");
    let sentry = EventGuard::new();
    let builder = builder.on_event(move |told| sentry.hear(&told.event, &told.address));
    let pool = builder.build().expect("a pool");
    drop(inside);
    pool.ready();
    test(&endpoint, &OnTokio(pool, runtime));

    let endpoint = start().expect("a free port");
    let builder = cenote_mio::Pool::builder(&endpoint.uri()).expect("a connection string");
    let sentry = EventGuard::new();
    let builder = builder.on_event(move |told| sentry.hear(&told.event, &told.address));
    let pool = builder.build().expect("a pool");
    pool.ready();
    test(&endpoint, &pool);
}

// HS-30, HS-48
#[test]
fn of_new_connections_alone() {
    on_both_shells(|endpoint, pool| {
        pool.ping();
        let before = told(endpoint);
        assert!(pool.append(driver("framework", Some("2.0"), Some("Framework Platform"))));
        pool.ping();
        let seen = endpoint.with(|server, _now| server.statistics());
        assert_eq!(seen.accepted, 1, "no connection on that account");
        assert_eq!(seen.commands["isMaster"], 1, "and no hello");
        pool.renew();
        pool.ping();
        let after = told(endpoint);
        let [name, version, platform] = &before;
        let expected = [
            format!("{name}|framework"),
            format!("{version}|2.0"),
            format!("{platform}|Framework Platform"),
        ];
        assert_eq!(after, expected);
    });
}

// HS-48
#[test]
fn each_once_and_in_their_order() {
    on_both_shells(|endpoint, pool| {
        pool.ping();
        let [name, version, platform] = told(endpoint);
        assert!(pool.append(driver("framework", Some("2.0"), None)));
        assert!(!pool.append(driver("framework", Some("2.0"), None)), "the same");
        assert!(
            !pool.append(driver("framework", Some("2.0"), Some(""))),
            "the same, said otherwise"
        );
        assert!(pool.append(driver("framework", None, None)), "another: it has no version");
        assert!(pool.append(driver("Framework", None, Some("Shop"))), "another: its case");
        assert!(!pool.append(driver("framework", Some("2.0"), None)), "there since long");
        pool.renew();
        pool.ping();
        let expected = [
            format!("{name}|framework|framework|Framework"),
            format!("{version}|2.0||"),
            format!("{platform}|Shop"),
        ];
        assert_eq!(told(endpoint), expected);
    });
}

#[test]
fn a_delimiter_is_refused() {
    for (name, version, platform) in
        [("a|b", None, None), ("a", Some("1|2"), None), ("a", None, Some("x|"))]
    {
        assert!(DriverInfo::new(name, version, platform).is_err());
    }
}
