//! Traces: what is recorded is what is replayed, whatever the payloads, however it is cut.

mod damage;
mod flight;
mod golden;
mod journal;
mod places;
mod recorded;
