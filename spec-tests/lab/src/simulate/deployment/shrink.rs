//! A failing world with as few parameters as show the same failure, and what happened in it last.

use std::sync::atomic::AtomicBool;

use super::plan::Plan;
use super::story::Story;
use super::world::World;
use crate::simulate::{Failure, TimeFaults, caught, create};

/// The failure of a world, with the plan of a simpler one that fails in the same way.
pub(super) fn explain(plan: &Plan, has_model: bool, failure: Failure) -> Failure {
    let (mut simplest, mut last) = (plan.clone(), None);
    let mut is_simpler = true;
    while std::mem::take(&mut is_simpler) {
        for simpler in simpler(&simplest) {
            let (found, story) = fail(&simpler, has_model);
            if found.is_some_and(|found| is_same(&found, &failure)) {
                (simplest, last, is_simpler) = (simpler, Some(story), true);
                break;
            }
        }
    }
    let story = last.unwrap_or_else(|| fail(plan, has_model).1);
    let Failure { complaint, inputs } = failure;
    let complaint = format!("{complaint}\n\nthe same with less:\n{simplest}\n\nat last:{story}");
    Failure { complaint, inputs }
}

fn fail(plan: &Plan, has_model: bool) -> (Option<Failure>, Story) {
    let stop = AtomicBool::new(false);
    let Ok(mut world) = create(|| World::new(plan, has_model, &stop)) else {
        return (None, Story::default());
    };
    world.story = Story::kept();
    let outcome = caught(|| world.run());
    let inputs = world.inputs;
    let failure = outcome.err().map(|complaint| Failure { complaint, inputs });
    (failure, std::mem::take(&mut world.story))
}

/// Numbers do not count: they differ with the smallest change.
fn is_same(one: &Failure, other: &Failure) -> bool {
    let words = |failure: &Failure| -> String {
        let letters = failure.complaint.chars().filter(|letter| !letter.is_ascii_digit());
        letters.take(50).collect()
    };
    words(one) == words(other)
}

/// Each with one thing less.
fn simpler(plan: &Plan) -> Vec<Plan> {
    let without_change = |at: usize| {
        let mut simpler = plan.clone();
        simpler.changes.remove(at);
        simpler
    };
    let without_wrong_answer = |at: usize| {
        let mut simpler = plan.clone();
        simpler.wrong_answers.remove(at);
        simpler
    };
    let mut all: Vec<_> = (0..plan.changes.len()).map(without_change).collect();
    all.extend((0..plan.wrong_answers.len()).map(without_wrong_answer));
    if plan.churn_every.is_some() {
        all.push(Plan { churn_every: None, ..plan.clone() });
    }
    if plan.credential_every.is_some() {
        all.push(Plan { credential_every: None, ..plan.clone() });
    }
    if plan.delay.is_some() {
        all.push(Plan { delay: None, ..plan.clone() });
    }
    if plan.time.is_faulty() {
        all.push(Plan { time: TimeFaults::default(), ..plan.clone() });
    }
    if plan.cancels != 0 {
        all.push(Plan { cancels: 0, ..plan.clone() });
    }
    if plan.callers > 1 {
        all.push(Plan { callers: 1, ..plan.clone() });
    }
    all
}
