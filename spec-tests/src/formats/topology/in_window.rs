//! Plays the files of `server-selection/tests/in_window`: which of several servers is chosen how often.

use std::collections::BTreeMap;

use cenote_conform::{Document, Unreadable};
use cenote_core::client::{Described, ReadPreference, choose_of_two, in_latency_window, suitable};
use cenote_core::topology::Topology;
use cenote_core::uri::ReadPreferenceMode;
use serde::Deserialize;

use super::selection::{Deployment, HEARTBEAT, LOCAL_THRESHOLD};
use crate::formats::outcome::Outcome;
use crate::formats::target::Target;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    description: String,
    topology_description: Deployment,
    mocked_topology_state: Vec<Busy>,
    iterations: u32,
    outcome: Expected,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Busy {
    address: String,
    operation_count: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    tolerance: f64,
    expected_frequencies: BTreeMap<String, f64>,
}

/// Plays what was read from a file about the choice within the latency window.
///
/// # Errors
///
/// When it is not of this format.
pub(in crate::formats) fn play_choices(document: &Document) -> Result<Vec<Outcome>, Unreadable> {
    let file: File = document.parse()?;
    let topology = file.topology_description.discover();
    let topology = topology.map_err(|what| document.refuse_in("", &what))?;
    let verdict = topology.and_then(|topology| file.judge(&topology)).into();
    let (path, target) = (document.path().to_owned(), Target::Core);
    Ok(vec![Outcome { file: path, target, description: file.description, verdict }])
}

impl File {
    fn judge(&self, topology: &Topology) -> Result<(), String> {
        let nearest = ReadPreference::of_mode(ReadPreferenceMode::Nearest);
        let found = suitable(topology.description(), &nearest, HEARTBEAT, &[]);
        let window = in_latency_window(&found.map_err(|error| error.to_string())?, LOCAL_THRESHOLD);
        let operations: BTreeMap<_, _> = self
            .mocked_topology_state
            .iter()
            .map(|server| (server.address.clone(), server.operation_count))
            .collect();
        let mut chosen: BTreeMap<String, u32> = BTreeMap::new();
        let mut seed = 42;
        for _ in 0..self.iterations {
            let of = |(address, _): &Described<'_>| {
                operations.get(&address.to_string()).copied().unwrap_or_default()
            };
            let (address, _) = choose_of_two(&window, draw(&mut seed), of).ok_or("no server")?;
            *chosen.entry(address.to_string()).or_default() += 1;
        }
        for (address, expected) in &self.outcome.expected_frequencies {
            let times = chosen.remove(address).unwrap_or_default();
            let seen = f64::from(times) / f64::from(self.iterations);
            let Expected { tolerance, .. } = self.outcome;
            // As the test runner's text has it: always, never, or about as often.
            let is_exact = *expected == 0.0 || *expected == 1.0;
            if (is_exact && seen != *expected) || (seen - expected).abs() > tolerance {
                return Err(format!("{address}: expected {expected} ± {tolerance}, seen {seen}"));
            }
        }
        if chosen.is_empty() { Ok(()) } else { Err(format!("also chosen: {chosen:?}")) }
    }
}

/// SplitMix64: the same numbers in every run.
fn draw(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*seed ^ (*seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
