//! Feeds the machine and the model the same inputs, and compares them after each.

mod judge;
mod payload;
mod quick;
mod resolve;
mod step;
mod story;
mod tagged;

use std::fmt;

use cenote_core::pool::{
    Action, Input, Instant, InvalidOptions, NoPayload, PoolOptions, PoolState, PoolTypes,
    WithoutEvents,
};

use self::payload::PayloadPlaces;
use self::quick::Quick;
use crate::model::Model;

pub use judge::{Comparable, judge, panic_message};
pub(crate) use judge::{Trace, feed, judge_refusal};
pub use step::{Clock, Op, Pick, Step, service};
pub(crate) use story::Story;
#[cfg(feature = "simulate")]
pub(crate) use tagged::map_input;
pub use tagged::{Tagged, strip_action, strip_input};

pub(crate) use resolve::{Ids, resolve};

/// Three machines and the model, which have to stay in the same state.
///
/// One machine has payloads, which differ from each other, and is compared with the model in every
/// detail. The second has no payloads, and its sink takes no events. The third is served at once
/// where that is possible. These have to make the same decisions and have the same fingerprint.
pub struct Lockstep {
    tagged: PoolState<Tagged>,
    quick: Quick,
    bare: PoolState<NoPayload>,
    model: Model<Tagged>,
    payloads: PayloadPlaces,
    clock: Instant,
    last_waiter: u64,
    story: Story,
}

impl Lockstep {
    /// Creates a pool; `None` if the machines and the model agree that the options are invalid.
    ///
    /// # Errors
    ///
    /// The first disagreement.
    pub fn new(options: &PoolOptions) -> Result<Option<Self>, String> {
        let (Some((tagged, model)), Some((bare, _))) = (create(options)?, create(options)?) else {
            return Ok(None);
        };
        let quick = Quick::new(options).map_err(|error| error.to_string())?;
        let (payloads, mut story) = (PayloadPlaces::default(), Story::default());
        story.begins(options);
        let clock = Instant::ORIGIN;
        Ok(Some(Self { tagged, quick, bare, model, payloads, clock, last_waiter: 0, story }))
    }

    /// Takes one step, and checks the result.
    ///
    /// # Errors
    ///
    /// The first disagreement.
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
        let hears = self.last_waiter.is_multiple_of(2);
        self.quick.take(now, input.clone(), actions.as_deref(), hears)?;
        self.step_bare(now, input, actions.as_deref())?;
        let fingerprint = self.tagged.fingerprint();
        for (what, other) in [
            ("without payloads", self.bare.fingerprint()),
            ("that is served at once", self.quick.pool.fingerprint()),
        ] {
            if other != fingerprint {
                return Err(format!("the machine {what} has another fingerprint"));
            }
        }
        Ok(())
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
            return Err("the machine without payloads refuses other inputs".to_owned());
        }
        let expected: Vec<_> =
            expected.unwrap_or_default().iter().filter_map(strip_action).collect();
        if actions != expected {
            return Err(format!("without payloads: {actions:#?}\nwith: {expected:#?}"));
        }
        Ok(())
    }
}

/// A machine and a model of it.
pub(crate) type Pair<S> = (PoolState<S>, Model<S>);

/// Creates a machine and a model; `None` if both refuse the options.
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

/// A run that failed, as a script that repeats it.
pub struct Failure {
    /// The pool's options.
    pub options: PoolOptions,
    /// The steps up to the one that failed.
    pub steps: Vec<Step>,
    /// The disagreement.
    pub complaint: String,
}

/// Takes all steps from a new pool. Does nothing if the options are invalid.
///
/// # Errors
///
/// The first step after which the machine and the model disagree.
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
        writeln!(f, "a pool with {}:", self.options)?;
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

/// Creates the causes of a machine's payload types.
pub(crate) trait Payload: PoolTypes {
    /// A cause that differs from those with other numbers, if the type has values that differ.
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
