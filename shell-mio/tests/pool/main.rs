//! The shell with a connector that does what a test says.

mod embedded;
mod failures;
mod lifecycle;
mod many;
mod metrics;
mod subscribers;
mod waiting;
mod world;
