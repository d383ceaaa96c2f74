//! What clients on all runtimes log, through `tracing`. In a process of its own: a subscriber is for all of it.

mod messages;
mod run;
mod selection;
mod topology;
