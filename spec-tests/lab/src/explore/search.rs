//! A breadth-first search: every state is reached on a shortest path, and expanded once.
//!
//! Copies of all queued states would take gigabytes. So a queued state is kept as the step that led
//! to it from another one, and computed again when its turn comes; neighbours mostly come from the
//! same state, which is cached until then.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicBool, Ordering};

use cenote_core::pool::{Input, Instant, NoPayload, PoolState};

use super::ending::expect_fair_ending;
use super::steps::steps;
use super::{Configuration, Line};
use crate::lockstep::{
    Clock, Failure, Ids, Op, Step, Trace, create, judge, judge_refusal, resolve,
};
use crate::model::Model;

/// Explores one configuration, up to the depth or to the first failure.
pub(super) fn search(configuration: &Configuration, depth: u32, stop: &AtomicBool) -> Line {
    let mut search = Search {
        configuration,
        visited: HashSet::default(),
        trail: Vec::new(),
        key: Vec::new(),
        transitions: 0,
        refusals: 0,
        depth: 0,
        stop,
    };
    let failure = search.run(depth).err();
    Line {
        name: configuration.name,
        depth: search.depth,
        states: search.visited.len() as u64,
        transitions: search.transitions,
        refusals: search.refusals,
        failure,
    }
}

struct Search<'a> {
    configuration: &'a Configuration,
    visited: HashSet<u64, BuildHasherDefault<AsItIs>>,
    /// The states that are to be expanded, in the order in which they were found.
    trail: Vec<Footprint>,
    /// A reused buffer.
    key: Vec<u64>,
    transitions: u64,
    refusals: u64,
    /// The length of the sequences that were all taken.
    depth: u32,
    /// Stops the search.
    stop: &'a AtomicBool,
}

/// The step by which a state was first reached.
struct Footprint {
    /// Index of the state before it.
    from: usize,
    step: Step,
}

/// A state, in the machine and in the model.
#[derive(Clone)]
struct Node {
    machine: PoolState<NoPayload>,
    model: Model<NoPayload>,
    requests: u64,
}

/// The index of the state in which every path starts; it has no footprint.
const START: usize = usize::MAX;

impl Search<'_> {
    fn run(&mut self, depth: u32) -> Result<(), Box<Failure>> {
        let start = self.start().map_err(|complaint| self.failure(START, None, complaint))?;
        self.is_new(&start);
        if depth == 0 {
            return Ok(());
        }
        self.expand(START, start.clone(), depth > 1)?;
        self.depth = 1;
        let mut parent = (START, start.clone());
        let mut level_begins = 0;
        for level in 2..=depth {
            let level_ends = self.trail.len();
            for index in level_begins..level_ends {
                if self.stop.load(Ordering::Relaxed) {
                    return Ok(());
                }
                let from = self.trail[index].from;
                if parent.0 != from {
                    parent = (from, self.walk_to(&start, from));
                }
                let node = self.walk_one(parent.1.clone(), index);
                self.expand(index, node, level < depth)?;
            }
            level_begins = level_ends;
            self.depth = level;
        }
        Ok(())
    }

    fn start(&self) -> Result<Node, String> {
        let created = create(&self.configuration.options)?;
        let (machine, model) = created.expect("a configuration with usable options");
        Ok(Node { machine, model, requests: 0 })
    }

    /// Takes every step from a state; with `note`, adds new states to the queue.
    fn expand(&mut self, index: usize, mut node: Node, note: bool) -> Result<(), Box<Failure>> {
        let trace = Trace::of(&node.machine);
        for step in steps(self.configuration, &node.machine, node.requests) {
            let is_new = match self.take(&mut node, &trace, &step) {
                Ok(is_new) => is_new,
                Err(complaint) => return Err(self.failure(index, Some(step), complaint)),
            };
            if is_new && note {
                self.trail.push(Footprint { from: index, step });
            }
        }
        Ok(())
    }

    /// Whether the step leads to a new state.
    fn take(&mut self, node: &mut Node, trace: &Trace, step: &Step) -> Result<bool, String> {
        let (now, input) = node.resolve(step);
        if let Err(reason) = node.model.judge(&input) {
            self.refusals += 1;
            return judge_refusal(&mut node.machine, trace, now, input, reason).map(|()| false);
        }
        self.transitions += 1;
        let mut next = node.clone();
        next.count(step);
        judge(&mut next.machine, &mut next.model, now, input)?;
        // A clock that runs backwards only changes a counter.
        let changes_nothing = matches!(step.clock, Clock::Back(_));
        if changes_nothing || !self.is_new(&next) {
            return Ok(false);
        }
        let in_the_end = |complaint| format!("if all goes well from here: {complaint}");
        expect_fair_ending(&next.machine).map(|()| true).map_err(in_the_end)
    }

    fn is_new(&mut self, node: &Node) -> bool {
        self.key.clear();
        let options = self.configuration.all_options();
        let options = options.take_while(|&options| options != node.machine.options()).count();
        self.key.extend([options as u64, node.requests]);
        node.model.write_key(&mut self.key);
        self.visited.insert(digest(&self.key))
    }

    fn walk_to(&self, start: &Node, index: usize) -> Node {
        let mut node = start.clone();
        for index in self.way_to(index) {
            node = self.walk_one(node, index);
        }
        node
    }

    /// Takes a step that was checked before.
    fn walk_one(&self, mut node: Node, index: usize) -> Node {
        let step = &self.trail[index].step;
        let (now, input) = node.resolve(step);
        node.count(step);
        judge(&mut node.machine, &mut node.model, now, input).expect("the same result as before");
        node
    }

    fn way_to(&self, index: usize) -> Vec<usize> {
        let mut way = Vec::new();
        let mut at = index;
        while at != START {
            way.push(at);
            at = self.trail[at].from;
        }
        way.reverse();
        way
    }

    fn failure(&self, index: usize, last: Option<Step>, complaint: String) -> Box<Failure> {
        let way = self.way_to(index).into_iter().map(|index| self.trail[index].step.clone());
        let steps = way.chain(last).collect();
        Box::new(Failure { options: self.configuration.options.clone(), steps, complaint })
    }
}

impl Node {
    fn resolve(&self, step: &Step) -> (Instant, Input<NoPayload>) {
        let ids = Ids { last_waiter: self.requests, clock: self.machine.now() };
        resolve(step, &self.machine, ids, |_| ())
    }

    fn count(&mut self, step: &Step) {
        self.requests += u64::from(matches!(step.op, Op::CheckOut { .. }));
    }
}

/// Sixty-four bits that depend on every bit of the key.
fn digest(key: &[u64]) -> u64 {
    let mut digest = key.len() as u64;
    for &word in key {
        digest = (digest ^ word).wrapping_mul(0x9FB2_1C65_1E98_DF25);
        digest ^= digest >> 32;
        digest = digest.wrapping_mul(0xD6E8_FEB8_6659_FD93);
        digest ^= digest >> 29;
    }
    digest
}

/// Keys are hashes already.
#[derive(Default)]
struct AsItIs(u64);

impl Hasher for AsItIs {
    fn write(&mut self, _: &[u8]) {
        unreachable!("keys are numbers");
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
