//! Routers that come and go in the SRV records: when they are looked up again, and what changes nothing, in virtual
//! time.

#![cfg(feature = "protocol")]

use std::time::Duration;

use cenote_core::address::ServerAddress;
use cenote_core::client::SrvPolling;
use cenote_core::connect::ServerKind;
use cenote_core::pool::Instant;
use cenote_core::uri::ConnectionString;
use cenote_core::uri::srv::{LookupError, SrvAnswers, SrvError, SrvRecord, TxtRecord};

const MINUTE: Duration = SrvPolling::SHORTEST_INTERVAL;

fn records(ports: &[u16]) -> Vec<SrvRecord> {
    let record =
        |&port: &u16| SrvRecord::new("a.example.com.", port).with_ttl(Duration::from_secs(5));
    ports.iter().map(record).collect()
}

/// A client, as far as its servers are concerned.
struct Client {
    servers: Vec<ServerAddress>,
    polling: Option<SrvPolling>,
    now: Instant,
}

impl Client {
    fn new(options: &str, ports: &[u16], txt: &[&str]) -> Self {
        let uri = format!("mongodb+srv://shop.example.com/?{options}");
        let txt = Ok(txt.iter().copied().map(TxtRecord::from).collect());
        let answers = SrvAnswers { srv: Ok(records(ports)), txt };
        let uri = ConnectionString::parse(&uri).expect("a connection string");
        let uri = uri.resolve(&answers, || 0).expect("hosts");
        let now = Instant::ORIGIN;
        assert_eq!(answers.ttl(), Duration::from_secs(5));
        let polling = SrvPolling::new(now, &uri, answers.ttl(), MINUTE);
        Self { servers: uri.hosts, polling, now }
    }

    fn polling(&mut self) -> &mut SrvPolling {
        self.polling.as_mut().expect("it is polled")
    }

    /// How long until the next look.
    fn pause(&mut self) -> Option<Duration> {
        let now = self.now;
        let next = self.polling.as_ref()?.next_rescan()?;
        Some(next.saturating_since(now))
    }

    /// The next look finds this, and the client does as it is told.
    fn look(&mut self, found: &Result<Vec<SrvRecord>, LookupError>) -> Vec<SrvError> {
        self.now = self.polling().next_rescan().expect("there is a next one");
        let (now, servers) = (self.now, self.servers.clone());
        let changes = self.polling().rescan(now, &servers, found, || 0);
        assert!(changes.added.iter().all(|server| !servers.contains(server)), "{changes:?}");
        assert!(changes.removed.iter().all(|server| servers.contains(server)), "{changes:?}");
        self.servers.retain(|server| !changes.removed.contains(server));
        self.servers.extend(changes.added);
        changes.problems
    }

    fn ports(&self) -> Vec<u16> {
        self.servers.iter().filter_map(ServerAddress::port).collect()
    }
}

/// Prose tests 6 to 8, and records that break the rules.
// SV-12, SV-14
#[test]
fn bad_answers_change_nothing_and_shorten_the_pause() {
    let failed = LookupError::Failed("the name server answered: Server Failure".to_owned());
    let outside = || vec![SrvRecord::new("a.evil.com", 3)];
    for (found, text) in [
        (Err(LookupError::TimedOut { after: MINUTE }), "no name server answered within 60s"),
        (Err(LookupError::NotFound), "the name does not exist"),
        (Err(failed), "Server Failure"),
        (Ok(Vec::new()), "the name has no such records"),
        (Ok(outside()), "names a.evil.com, which is not below example.com"),
    ] {
        let mut client = Client::new("heartbeatFrequencyMS=7000", &[1, 2], &[]);
        let problems = client.look(&found);
        assert_eq!(problems.len(), 1);
        assert!(problems[0].to_string().contains(text), "{}", problems[0]);
        assert_eq!(client.ports(), [1, 2]);
        assert_eq!(client.pause(), Some(Duration::from_secs(7)));
        // And so until there is a server again.
        client.look(&Err(LookupError::NotFound));
        assert_eq!(client.pause(), Some(Duration::from_secs(7)));
        client.look(&Ok(records(&[2])));
        assert_eq!((client.ports(), client.pause()), (vec![2], Some(MINUTE)));
    }
    // A server outside of the domain is left out, the others count.
    let mut client = Client::new("", &[1, 2], &[]);
    let mixed = [outside(), records(&[2, 3])].concat();
    assert_eq!(client.look(&Ok(mixed)).len(), 1);
    assert_eq!(client.ports(), [2, 3]);
    // Of many the log is told of some; and no cluster has so many routers.
    assert_eq!(client.look(&Ok((0..500).flat_map(|_| outside()).collect())).len(), 10);
    let many = client.look(&Ok(records(&(1..=1_001).collect::<Vec<_>>())));
    assert_eq!(
        many[0].to_string(),
        "shop.example.com has 1001 SRV records, more than 1000: correct them"
    );
    assert_eq!(client.ports(), [2, 3]);
}

// SV-11
#[test]
fn the_shortest_ttl_is_the_pause() {
    let mut client = Client::new("", &[1], &[]);
    assert_eq!(client.pause(), Some(MINUTE));
    let of = |port, seconds| {
        SrvRecord::new("a.example.com", port).with_ttl(Duration::from_secs(seconds))
    };
    client.look(&Ok(vec![of(1, 86_400), of(2, 300)]));
    assert_eq!(client.pause(), Some(Duration::from_secs(300)));
    client.look(&Ok(vec![of(1, 86_400), of(2, 86_400)]));
    assert_eq!(client.pause(), Some(Duration::from_secs(86_400)));
}

/// Prose test 9, and replica sets.
// LB-40, SV-10
#[test]
fn other_servers_than_routers_are_not_followed() {
    assert!(Client::new("loadBalanced=true", &[1], &[]).polling.is_none());
    assert!(Client::new("", &[1], &["loadBalanced=true"]).polling.is_none());
    assert!(Client::new("replicaSet=rs0", &[1], &[]).polling.is_none());
    assert!(Client::new("", &[1], &["replicaSet=rs0"]).polling.is_none());
    let direct = ConnectionString::parse("mongodb://a").expect("a connection string");
    assert!(SrvPolling::new(Instant::ORIGIN, &direct, MINUTE, MINUTE).is_none());

    for (kind, ports, is_followed) in [
        (ServerKind::Mongos, &[1, 2][..], true),
        (ServerKind::RsGhost, &[1, 2], true),
        (ServerKind::Standalone, &[1, 2], true),
        (ServerKind::Standalone, &[1], false),
        (ServerKind::RsPrimary, &[1, 2], false),
        (ServerKind::RsSecondary, &[1, 2], false),
        (ServerKind::RsArbiter, &[1, 2], false),
        (ServerKind::RsOther, &[1, 2], false),
    ] {
        let mut client = Client::new("", ports, &[]);
        client.polling().observe(kind);
        assert_eq!(client.pause().is_some(), is_followed, "{kind}");
        // It stays so, whatever is found later: also while an answer is under way.
        let now = client.now;
        client.polling().observe(ServerKind::Mongos);
        let servers = client.servers.clone();
        let changes = client.polling().rescan(now, &servers, &Ok(records(&[9])), || 0);
        assert_eq!(changes.added.is_empty(), !is_followed, "{kind}");
        assert_eq!(client.pause().is_some(), is_followed, "{kind}");
    }
}
