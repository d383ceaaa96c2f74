//! Checks one input in every way.

use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};

use cenote_core::pool::{
    Action, Deadline, Input, Instant, MisuseReason, PoolState, PoolTypes, Snapshot,
};

use crate::model::Model;

/// Payload types that can be cloned and compared.
pub trait Comparable:
    PoolTypes<
        Conn: Clone + PartialEq + Debug,
        Waiter: Clone + PartialEq + Debug,
        Cause: PartialEq + Debug,
    > + Clone
    + PartialEq
    + Debug
{
}

impl<S> Comparable for S where
    S: PoolTypes<
            Conn: Clone + PartialEq + Debug,
            Waiter: Clone + PartialEq + Debug,
            Cause: PartialEq + Debug,
        > + Clone
        + PartialEq
        + Debug
{
}

/// Feeds one input to the machine and to the model, and compares everything that is visible: the
/// actions or the refusal, the deadline, and the state in every detail. Also checks the
/// machine's own invariants, and that a refusal changes nothing.
///
/// Returns the actions, or `None` if the machine and the model both refuse the input.
///
/// # Errors
///
/// The first disagreement.
pub fn judge<S: Comparable>(
    machine: &mut PoolState<S>,
    model: &mut Model<S>,
    now: Instant,
    input: Input<S>,
) -> Result<Option<Vec<Action<S>>>, String> {
    let expected = model.handle(now, input.clone());
    if let Err(reason) = expected {
        let before = Trace::of(machine);
        return judge_refusal(machine, &before, now, input, reason).map(|()| None);
    }
    let actions = feed(machine, now, input)?
        .map_err(|(reason, _)| format!("the machine refuses: {reason}\nthe model does not"))?;
    let expected = expected.expect("refusals were dealt with");
    let expected = learn_slots(model, expected, &actions);
    if actions != expected {
        return Err(format!("the machine: {actions:#?}\nthe model: {expected:#?}"));
    }
    compare_views(machine, model)?;
    Ok(Some(actions))
}

/// Checks that nothing changed, nothing was emitted, and the input was returned unchanged.
pub(crate) fn judge_refusal<S: Comparable>(
    machine: &mut PoolState<S>,
    before: &Trace,
    now: Instant,
    input: Input<S>,
    expected: MisuseReason,
) -> Result<(), String> {
    let given = input.clone();
    let (reason, returned) = match feed(machine, now, input)? {
        Ok(actions) => {
            return Err(format!("the model refuses: {expected}\nthe machine does {actions:#?}"));
        }
        Err(refusal) => refusal,
    };
    if reason != expected {
        return Err(format!("the machine refuses because {reason}\nthe model because {expected}"));
    }
    if *returned != given {
        return Err(format!("a refused input came back as {returned:?}"));
    }
    if *before != Trace::of(machine) {
        return Err("a refused input changed the machine".to_owned());
    }
    Ok(())
}

/// The parts of the state in which any change by a refused input would be visible.
#[derive(PartialEq)]
pub(crate) struct Trace {
    fingerprint: u64,
    snapshot: Snapshot,
    deadline: Option<Deadline>,
}

impl Trace {
    pub(crate) fn of<S: PoolTypes>(machine: &PoolState<S>) -> Self {
        Self {
            fingerprint: machine.fingerprint(),
            snapshot: machine.snapshot(),
            deadline: machine.next_deadline(),
        }
    }
}

type Refusal<S> = (MisuseReason, Box<Input<S>>);

/// Feeds the machine alone. Returns a panic of the machine or of its invariants as an error.
pub(crate) fn feed<S: Comparable>(
    machine: &mut PoolState<S>,
    now: Instant,
    input: Input<S>,
) -> Result<Result<Vec<Action<S>>, Refusal<S>>, String> {
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let mut actions = Vec::new();
        let outcome = machine.handle(now, input, &mut actions);
        // After a refusal, other checks compare the state.
        if outcome.is_ok() {
            machine.check_invariants();
        }
        (outcome, actions)
    }));
    match outcome {
        Ok((Ok(()), actions)) => Ok(Ok(actions)),
        Ok((Err(misuse), actions)) if actions.is_empty() => {
            Ok(Err((misuse.reason, Box::new(misuse.input))))
        }
        Ok((Err(misuse), actions)) => Err(format!("refused ({misuse}), but emitted {actions:#?}")),
        Err(panic) => Err(format!("the machine panicked: {}", panic_message(panic.as_ref()))),
    }
}

/// The message of a panic, if it has one.
pub fn panic_message(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a message")
}

/// Only the machine chooses the slots of connections: passes them to the model, and puts them into
/// the actions that the model expects. Numbers remain to be compared.
fn learn_slots<S: Comparable>(
    model: &mut Model<S>,
    expected: Vec<Action<S>>,
    actions: &[Action<S>],
) -> Vec<Action<S>> {
    let mut expected = expected;
    for (expected, action) in expected.iter_mut().zip(actions) {
        if let (Action::StartEstablish { id, .. }, Action::StartEstablish { id: told, .. }) =
            (expected, action)
            && id.number() == told.number()
        {
            *id = *told;
            model.learn(*told);
        }
    }
    expected
}

fn compare_views<S: Comparable>(machine: &PoolState<S>, model: &Model<S>) -> Result<(), String> {
    compare("next_deadline", &machine.next_deadline(), &model.next_deadline())?;
    let expected = model.snapshot();
    compare("snapshot", &machine.snapshot(), &expected)?;
    let is_filled = expected.available + expected.in_use >= expected.min_pool_size;
    compare("is_filled", &machine.is_filled(), &is_filled)?;
    let connections = model.connections();
    compare_all("connections", || machine.connections(), &connections)?;
    compare_all("waiters", || machine.waiters(), &model.waiters())?;
    let services = model.services();
    compare_all("services", || machine.services(), &services)?;
    for (service, generation, _) in services {
        let told = machine.service_generation(service);
        compare("service_generation", &told, &Some(generation))?;
    }
    compare("service_clears", &machine.service_clears(), &model.service_clears())?;
    compare("generation", &machine.generation(), &expected.generation)?;
    compare("now", &machine.now(), &model.now())?;
    for info in connections {
        compare("is_stale", &machine.is_stale(info.id), &info.stale)?;
        compare("service_of", &machine.service_of(info.id), &info.service)?;
    }
    for (id, generation) in model.generations() {
        compare("generation_of", &machine.generation_of(id), &Some(generation))?;
    }
    if !machine.needs_now() && machine.next_deadline().is_some() {
        return Err("a deadline runs, but needs_now is false".to_owned());
    }
    Ok(())
}

/// Collects what the machine has only to show it.
fn compare_all<T: PartialEq + Debug, I: Iterator<Item = T>>(
    what: &str,
    machine: impl Fn() -> I,
    model: &[T],
) -> Result<(), String> {
    let mut rest = machine();
    let is_same = model.iter().all(|expected| rest.next().as_ref() == Some(expected));
    if is_same && rest.next().is_none() {
        return Ok(());
    }
    compare(what, &machine().collect::<Vec<T>>().as_slice(), &model)
}

fn compare<T: PartialEq + Debug>(what: &str, machine: &T, model: &T) -> Result<(), String> {
    if machine == model {
        return Ok(());
    }
    Err(format!("{what}, the machine: {machine:#?}\n{what}, the model: {model:#?}"))
}
