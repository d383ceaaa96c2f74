//! Server selection on a topology, beyond the official files.

use std::collections::BTreeMap;
use std::time::Duration;

use bson::rawdoc;
use cenote_core::client::{
    InvalidReadPreference, ReadPreference, Selection, Selector, choose_of_two, in_latency_window,
    select, suitable,
};
use cenote_core::uri::{ConnectionString, ReadPreferenceMode};

use crate::topology::world::{World, address, elected, member, standalone};

const HEARTBEAT: Duration = Duration::from_secs(10);

#[test]
fn what_is_shown_of_a_read_preference() {
    let uri = "mongodb://a/?readPreference=nearest&maxStalenessSeconds=120\
               &readPreferenceTags=dc:ny,rack:1&readPreferenceTags=";
    let uri = ConnectionString::parse(uri).unwrap();
    let preference = ReadPreference::new(&uri.read_write);
    assert_eq!(preference.to_string(), "nearest {dc: ny, rack: 1} {}, 120s stale at most");
    assert_eq!(ReadPreference::PRIMARY.to_string(), "primary");
}

// SS-03
#[test]
fn a_read_preference_that_cannot_be_followed() {
    let mut preference = ReadPreference::of_mode(ReadPreferenceMode::Primary);
    preference.tag_sets = vec![[("dc".to_owned(), "ny".to_owned())].into()];
    assert_eq!(preference.validate(HEARTBEAT), Err(InvalidReadPreference::TagsOfPrimary));
    preference.tag_sets = vec![BTreeMap::new()];
    assert_eq!(preference.validate(HEARTBEAT), Ok(()));
    preference.max_staleness = Some(Duration::from_secs(120));
    assert_eq!(preference.validate(HEARTBEAT), Err(InvalidReadPreference::StalenessOfPrimary));
    preference.mode = ReadPreferenceMode::Nearest;
    assert_eq!(preference.validate(HEARTBEAT), Ok(()));
    let refused = preference.validate(Duration::from_secs(111)).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "maxStalenessSeconds is 120s, which is less than 121s: set at least 90, and at least \
         heartbeatFrequencyMS and 10 seconds"
    );
}

/// A member that does not say when it wrote might be any time behind.
// SS-05
#[test]
fn a_secondary_that_says_nothing_of_its_writes_is_stale() {
    let mut world = World::new("mongodb://a/?replicaSet=rs");
    world.reply("a", &member("rs", "secondary", &["a:27017"]));
    let mut preference = ReadPreference::of_mode(ReadPreferenceMode::Secondary);
    let topology = world.topology.description();
    let found = suitable(topology, &preference, HEARTBEAT, &[]).unwrap();
    assert_eq!(in_latency_window(&found, Duration::ZERO).len(), 1);
    preference.max_staleness = Some(Duration::from_secs(90));
    assert!(suitable(topology, &preference, HEARTBEAT, &[]).unwrap().is_empty());
}

// SD-53, SS-08
#[test]
fn two_different_servers_are_drawn() {
    assert_eq!(choose_of_two(&[] as &[u64], 7, |busy| *busy), None);
    assert_eq!(choose_of_two(&[5_u64], u64::MAX, |busy| *busy), Some(&5));
    for draw in [0, u64::MAX, 1 << 63, u64::from(u32::MAX), u64::MAX << 32] {
        assert_eq!(choose_of_two(&[3, 5_u64], draw, |busy| *busy), Some(&3), "{draw}");
    }
    // The busiest of three is never chosen: it would have to be drawn twice.
    for draw in (0..u64::MAX).step_by(usize::MAX / 1000) {
        assert_ne!(choose_of_two(&[9, 3, 5_u64], draw, |busy| *busy), Some(&9), "{draw}");
    }
}

/// The table of "Determining If A Topology Has Readable/Writable Servers".
// SE-12
#[test]
fn whether_a_topology_has_servers_to_read_and_to_write() {
    let alone = |uri: &str, reply: Option<&str>| {
        let mut world = World::new(uri);
        match reply {
            None => {}
            Some("standalone") => world.reply("a", &rawdoc! { "ok": 1, "isWritablePrimary": true }),
            Some("mongos") => {
                world
                    .reply("a", &rawdoc! { "ok": 1, "isWritablePrimary": true, "msg": "isdbgrid" });
            }
            Some(role) => world.reply("a", &member("rs", role, &["a:27017"])),
        }
        world
    };
    for (uri, reply, primary, secondary, nearest) in [
        ("mongodb://a", None, false, false, false),
        ("mongodb://a", Some("standalone"), true, true, true),
        ("mongodb://a/?directConnection=true", None, false, false, false),
        ("mongodb://a,b", Some("mongos"), true, true, true),
        ("mongodb://a/?replicaSet=rs", None, false, false, false),
        ("mongodb://a/?replicaSet=rs", Some("secondary"), false, true, true),
        ("mongodb://a/?replicaSet=rs", Some("primary"), true, false, true),
        ("mongodb://a/?loadBalanced=true", None, true, true, true),
    ] {
        let world = alone(uri, reply);
        let topology = world.topology.description();
        let reads = |mode| topology.has_readable_server(&ReadPreference::of_mode(mode), HEARTBEAT);
        let seen = [
            reads(ReadPreferenceMode::Primary),
            reads(ReadPreferenceMode::Secondary),
            reads(ReadPreferenceMode::Nearest),
        ];
        assert_eq!(seen, [primary, secondary, nearest], "{uri} {reply:?}");
        assert_eq!(topology.has_writable_server(), primary, "{uri} {reply:?}");
    }
    // One that cannot be followed finds none.
    let mut stale = ReadPreference::of_mode(ReadPreferenceMode::Secondary);
    stale.max_staleness = Some(Duration::from_secs(1));
    let world = alone("mongodb://a/?replicaSet=rs", Some("secondary"));
    assert!(!world.topology.description().has_readable_server(&stale, HEARTBEAT));
}

/// By a caller whose client has made all pools, or none of them yet.
fn selected(world: &World, selector: &Selector, has_pools: bool) -> Selection<String> {
    let topology = world.topology.description();
    let selected = select(selector, topology, HEARTBEAT, Duration::ZERO, |fitting| {
        let (address, _) = fitting.first().filter(|_| has_pools)?;
        Some(address.to_string())
    });
    selected.expect("it can be followed")
}

// SS-12, SS-14
#[test]
fn what_a_caller_does_meanwhile() {
    let mut world = World::new("mongodb://a/?replicaSet=rs");
    let stranger = Selector::Address(address("stranger"));
    assert_eq!(selected(&world, &Selector::Primary, true), Selection::Wait);
    assert_eq!(selected(&world, &stranger, true), Selection::Wait, "a member may name it");
    world.reply("a", &elected(&["a:27017"], 1, 1));
    let found = Selection::Found("a:27017".to_owned());
    assert_eq!(selected(&world, &Selector::Primary, true), found);
    assert_eq!(selected(&world, &Selector::Primary, false), Selection::Wait);
    assert_eq!(selected(&world, &Selector::Secondary, true), Selection::Wait);
    assert_eq!(selected(&world, &stranger, true), Selection::Foreign(address("stranger")));

    let mut world = World::new("mongodb://a,b/?replicaSet=rs");
    world.reply("a", &standalone());
    assert_eq!(selected(&world, &Selector::Any, true), Selection::Wait, "for b");
    world.reply("b", &standalone());
    assert_eq!(
        selected(&world, &Selector::Any, true),
        Selection::Wait,
        "one may join a replica set"
    );
}

/// Each error of selection and each of its log records has it.
#[test]
fn the_text_of_a_large_topology_is_cut() {
    let hosts: Vec<_> = (0..1000).map(|host| format!("h{host}")).collect();
    let world = World::new(&format!("mongodb://{}/", hosts.join(",")));
    let text = world.topology.description().to_string();
    assert_eq!(text.matches("Unknown: ").count(), 21, "of the topology, and of twenty servers");
    assert!(text.ends_with("; and 980 more"), "{text}");
}
