//! What all predictions of a trace draw from.

use std::collections::BTreeMap;

use super::followers::{self, has_failed};
use super::patience::Patience;
use super::server::in_use_at_begin;
use super::workload::Workload;

/// What a trace shows, whatever the options and the random numbers of a prediction are.
pub(crate) struct Known<'a> {
    pub(super) workload: &'a Workload,
    /// Requests whose use ended, in order: nested ones, and others.
    pub(super) used: [Vec<u32>; 2],
    /// The same by how long they lasted, without those that ended with a stall.
    pub(super) by_length: Vec<u32>,
    pub(super) patience: Patience,
    /// How many connections were in use when each use of the trace began, if the server has a limit.
    pub(super) in_use: Vec<u32>,
    /// Requests that failed and may be tried again, in order; and how often.
    pub(super) failed: Vec<u32>,
    pub(super) most_tries: u32,
    /// The nested request of each use of the trace that has one.
    pub(super) inner: BTreeMap<u32, u32>,
}

impl<'a> Known<'a> {
    pub(super) fn of(workload: &'a Workload, is_server_limited: bool) -> Self {
        let requests = &workload.requests;
        let is_nested = |number: &u32| workload.nested.contains_key(number);
        let is_whole = |number: &u32| workload.stalls.cut(*number).is_none();
        let mut by_length: Vec<_> = workload.uses().filter(is_whole).collect();
        by_length.sort_unstable_by_key(|&number| (requests[number as usize].used(), number));
        let (tries, most_tries) = followers::tries(&workload.retries);
        let failed = (0..).zip(requests).filter(|(number, request)| {
            has_failed(request) && tries.get(number).is_none_or(|it| *it < most_tries)
        });
        Self {
            workload,
            used: workload.uses().partition(is_nested).into(),
            by_length,
            patience: Patience::of(workload),
            in_use: if is_server_limited { in_use_at_begin(workload) } else { Vec::new() },
            failed: failed.map(|(number, _)| number).collect(),
            most_tries,
            inner: workload.nested.iter().map(|(&inner, &(outer, _))| (outer, inner)).collect(),
        }
    }
}
