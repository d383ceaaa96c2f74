//! Drives the machine and the model together, step by step, and compares after each.

mod judge;
mod ledger;
mod payload;
mod resolve;
mod step;
mod story;
mod tagged;

use std::fmt;

use cenote_core::pool::{
    Action, Event, Input, Instant, InvalidOptions, NoPayload, PoolOptions, PoolState, PoolTypes,
    WithoutEvents,
};

use self::payload::PayloadSource;
use crate::model::Model;

pub use judge::{Comparable, judge};
pub(crate) use judge::{Trace, judge_refusal, panic_message};
pub use ledger::Ledger;
pub use step::{Brief, Clock, Op, Pick, Step, service};
pub(crate) use story::Story;
pub(crate) use tagged::map_input;
pub use tagged::{Tagged, strip_action, strip_input};

pub(crate) use resolve::{Ids, resolve};

/// Two machines and the model, in the same state if all is well.
///
/// One machine carries payloads that can be told apart and is compared with the model in every
/// detail. The other carries none and its sink wants no events: it has to take the same decisions
/// and to have the same fingerprint.
pub struct Lockstep {
    tagged: PoolState<Tagged>,
    bare: PoolState<NoPayload>,
    model: Model<Tagged>,
    payloads: PayloadSource,
    clock: Instant,
    last_waiter: u64,
    story: Story,
}

impl Lockstep {
    /// A new pool; `None` if the options are unusable and all agree on that.
    ///
    /// # Errors
    ///
    /// What is wrong, in words.
    pub fn new(options: &PoolOptions) -> Result<Option<Self>, String> {
        let (Some((tagged, model)), Some((bare, _))) = (create(options)?, create(options)?) else {
            return Ok(None);
        };
        let (payloads, mut story) = (PayloadSource::default(), Story::default());
        story.begins(options);
        let clock = Instant::ORIGIN;
        Ok(Some(Self { tagged, bare, model, payloads, clock, last_waiter: 0, story }))
    }

    /// Takes one step, and judges it.
    ///
    /// # Errors
    ///
    /// What is wrong, in words.
    pub fn step(&mut self, step: &Step) -> Result<(), String> {
        let payloads = &mut self.payloads;
        let ids = Ids { last_waiter: self.last_waiter, clock: self.clock };
        let (now, input) = resolve(step, &self.tagged, ids, |holder| match holder {
            Some(number) => payloads.held(number),
            None => payloads.fresh(),
        });
        self.clock = now;
        if let Input::CheckOutRequested { id, .. } = &input {
            self.last_waiter = self.last_waiter.max(id.0);
        }
        let actions = judge(&mut self.tagged, &mut self.model, now, input.clone())?;
        if let Some(actions) = &actions {
            self.payloads.follow(&input, actions, &self.tagged)?;
            self.story.goes_on(&input, actions, self.tagged.now())?;
        }
        self.step_bare(now, input, actions.as_deref())
    }

    fn step_bare(
        &mut self,
        now: Instant,
        input: Input<Tagged>,
        expected: Option<&[Action<Tagged>]>,
    ) -> Result<(), String> {
        let mut actions = Vec::new();
        let outcome = self.bare.handle(now, strip_input(input), &mut WithoutEvents(&mut actions));
        if outcome.is_ok() != expected.is_some() {
            return Err("payloads make a difference to what is refused".to_owned());
        }
        let expected: Vec<_> =
            expected.unwrap_or_default().iter().filter_map(strip_action).collect();
        if actions != expected {
            return Err(format!("without payloads: {actions:#?}\nwith: {expected:#?}"));
        }
        if self.bare.fingerprint() != self.tagged.fingerprint() {
            return Err("payloads or events make a difference to the fingerprint".to_owned());
        }
        Ok(())
    }
}

/// A machine and a model of it.
pub(crate) type Pair<S> = (PoolState<S>, Model<S>);

/// A machine and a model that agree from the start; `None` if they agree that it cannot be.
pub(crate) fn create<S: Comparable>(options: &PoolOptions) -> Result<Option<Pair<S>>, String> {
    let mut actions = Vec::new();
    let machine: Result<PoolState<S>, InvalidOptions> =
        PoolState::new(Instant::ORIGIN, options.clone(), &mut actions);
    match (machine, Model::new(Instant::ORIGIN, options.clone())) {
        (Ok(machine), Ok((model, expected))) if actions == expected => Ok(Some((machine, model))),
        (Ok(_), Ok((_, expected))) => Err(format!("created with {actions:?}, not {expected:?}")),
        (Err(machine), Err(model)) if machine == model && actions.is_empty() => Ok(None),
        (machine, model) => {
            Err(format!("the machine: {:?}, the model: {:?}", machine.err(), model.err()))
        }
    }
}

/// A run that went wrong, as a script that repeats it.
pub struct Failure {
    /// Of the pool.
    pub options: PoolOptions,
    /// Up to and including the one that went wrong.
    pub steps: Vec<Step>,
    /// What went wrong.
    pub complaint: String,
}

/// Takes all the steps, from a new pool; unusable options are a very short run.
///
/// # Errors
///
/// The first step after which something was wrong.
pub fn run(options: &PoolOptions, steps: &[Step]) -> Result<(), Box<Failure>> {
    let fail = |taken: &[Step], complaint| {
        Box::new(Failure { options: options.clone(), steps: taken.to_vec(), complaint })
    };
    let Some(mut lockstep) = Lockstep::new(options).map_err(|complaint| fail(&[], complaint))?
    else {
        return Ok(());
    };
    for (index, step) in steps.iter().enumerate() {
        lockstep.step(step).map_err(|complaint| fail(&steps[..=index], complaint))?;
    }
    Ok(())
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "a pool with {}:", Brief(&self.options))?;
        for (index, step) in self.steps.iter().enumerate() {
            writeln!(f, "{:>4}. {step}", index + 1)?;
        }
        f.write_str(&self.complaint)
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Runs the machine alone, judged by its invariants and by the sum of its events.
///
/// # Errors
///
/// As [`run`].
pub fn run_alone(options: &PoolOptions, steps: &[Step]) -> Result<(), Box<Failure>> {
    let mut created: Vec<Action<NoPayload>> = Vec::new();
    let Ok(mut machine) =
        PoolState::<NoPayload>::new(Instant::ORIGIN, options.clone(), &mut created)
    else {
        return Ok(());
    };
    assert!(matches!(
        created.as_slice(),
        [Action::EmitEvent(Event::ConnectionPoolCreated { options: told })] if **told == *options
    ));
    let mut ids = Ids { last_waiter: 0, clock: Instant::ORIGIN };
    for (index, step) in steps.iter().enumerate() {
        step_alone(&mut machine, &mut ids, step).map_err(|complaint| {
            let steps = steps[..=index].to_vec();
            Box::new(Failure { options: options.clone(), steps, complaint })
        })?;
    }
    Ok(())
}

fn step_alone(
    machine: &mut PoolState<NoPayload>,
    ids: &mut Ids,
    step: &Step,
) -> Result<(), String> {
    let (now, input) = resolve(step, machine, *ids, |_| ());
    ids.clock = now;
    if let Input::CheckOutRequested { id, .. } = &input {
        ids.last_waiter = ids.last_waiter.max(id.0);
    }
    let (before, ledger) = (machine.snapshot(), Ledger::of(machine));
    let fingerprint = machine.fingerprint();
    match judge::feed(machine, now, input)? {
        Ok(actions) => ledger.fold(&before, &actions, machine),
        Err(_) if fingerprint == machine.fingerprint() => Ok(()),
        Err((reason, _)) => Err(format!("refused ({reason}), but it left a trace")),
    }
}

/// Every payload of a shell, made by one function.
pub(crate) trait Payload: PoolTypes {
    /// A cause that is told apart from others by its number, where there are any.
    fn cause(number: u64) -> Self::Cause;
}

impl Payload for NoPayload {
    fn cause(_: u64) {}
}

impl Payload for Tagged {
    fn cause(number: u64) -> u64 {
        number
    }
}
