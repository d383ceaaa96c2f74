//! Our own scenarios on the state machine, and on pools of the tests.

mod simulation;
mod target;
