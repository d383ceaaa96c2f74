//! Names that an external resolver resolves, and connections that open slowly.

use std::io::{self};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use cenote_core::error::Stage;
use cenote_core::uri::ConnectionString;
use cenote_endpoint::{Settings, TlsFault};
use cenote_mio::{Builder, MongoConnector};

use super::world::{checked, ping, refusal};
use crate::world::{plain, tls};

/// A name with several addresses, of which the first refuses connections.
#[test]
fn the_addresses_of_a_name_are_tried_in_turn() {
    let endpoint = plain();
    let uri = endpoint.uri().replace("127.0.0.1", "db.invalid");
    let address = ConnectionString::parse(&uri).unwrap();
    let [refusing, listening] = ["127.0.0.2", "127.0.0.1"].map(|it| it.parse().unwrap());
    for addresses in [vec![refusing, listening], vec![listening]] {
        let mongo = MongoConnector::new(&address).unwrap().with_addresses(addresses);
        let pool = checked(Builder::new(address.hosts[0].clone(), mongo)).build().unwrap();
        pool.ready();
        assert!(ping(&pool));
    }
    // A resolver that is at a loss, and one that loses its question.
    let lost = MongoConnector::new(&address).unwrap().with_resolver(drop);
    let refused = MongoConnector::new(&address).unwrap().with_resolver(|lookup| {
        assert_eq!(lookup.host(), "db.invalid");
        lookup.answer(Err(io::ErrorKind::NotFound.into()));
    });
    for mongo in [lost, refused] {
        let pool = checked(Builder::new(address.hosts[0].clone(), mongo)).build().unwrap();
        pool.ready();
        assert_eq!(refusal(&pool).stage(), Stage::Dns);
    }
}

/// A slow resolver delays no other connection.
#[test]
fn a_name_that_takes_its_time_holds_up_nobody() {
    let endpoint = plain();
    let uri = endpoint.uri().replace("127.0.0.1", "db.invalid");
    let address = ConnectionString::parse(&uri).unwrap();
    let (sender, questions) = std::sync::mpsc::channel();
    let mongo = MongoConnector::new(&address).unwrap().with_resolver(move |lookup| {
        sender.send(lookup).expect("the receiver is there");
    });
    let pool = checked(Builder::new(address.hosts[0].clone(), mongo)).build().unwrap();
    pool.ready();
    thread::scope(|scope| {
        let [first, second] = [(); 2].map(|()| scope.spawn(|| ping(&pool)));
        let [one, other] = [(); 2].map(|()| questions.recv().unwrap());
        let here = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), other.port());
        other.answer(Ok(vec![here]));
        // One of them is through, while the other has no address yet.
        while pool.snapshot().total - pool.snapshot().pending == 0 {
            thread::yield_now();
        }
        one.answer(Ok(vec![here]));
        assert!(first.join().unwrap() && second.join().unwrap());
    });
}

/// One pool, one loop: 300 connections that will take minutes, and one that goes through.
// ES-04
#[test]
fn hundreds_of_handshakes_byte_by_byte_do_not_hold_up_others() {
    const SLOW: u32 = 300;
    let (slow, quick) = (tls(Settings::default()), tls(Settings::default()));
    slow.set_tls_fault(Some(TlsFault::Drip { every: Duration::from_millis(100) }));
    let options =
        "tls=true&tlsInsecure=true&connectTimeoutMS=0&maxConnecting=1000&maxPoolSize=1000";
    let uri = ConnectionString::parse(&format!("mongodb://db.invalid/?{options}")).unwrap();
    let [to_slow, to_quick] = [&slow, &quick].map(|endpoint| {
        let port = endpoint.address().port().expect("TCP");
        SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port)
    });
    let asked = AtomicU32::new(0);
    let mongo = MongoConnector::new(&uri).unwrap().with_resolver(move |lookup| {
        let is_slow = asked.fetch_add(1, Ordering::Relaxed) < SLOW;
        lookup.answer(Ok(vec![if is_slow { to_slow } else { to_quick }]));
    });
    let builder = Builder::new(uri.hosts[0].clone(), mongo).replace_options(uri.pool.clone());
    let pool = checked(builder).build().unwrap();
    pool.ready();
    let threads: Vec<_> = (0..SLOW)
        .map(|_| {
            let pool = pool.clone();
            thread::spawn(move || pool.check_out().map(drop).unwrap_err().name())
        })
        .collect();
    while pool.snapshot().pending < SLOW {
        thread::yield_now();
    }
    assert!(ping(&pool));
    assert_eq!(pool.snapshot().pending, SLOW, "they are still at it");
    pool.close();
    for thread in threads {
        assert_eq!(thread.join().unwrap(), "PoolClosedError");
    }
}
