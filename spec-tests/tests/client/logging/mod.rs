//! What clients on all runtimes log, through `tracing`.

mod messages;
mod run;
mod selection;
mod topology;
