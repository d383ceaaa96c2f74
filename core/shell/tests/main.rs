//! Pools and their recordings, with connectors that do what a test says, on every runtime; and simulated worlds. The
//! models of interleavings are alone in an executable that is built for them: `.ci/model`.

#[cfg(cenote_model)]
mod model;

#[cfg(not(cenote_model))]
mod logging;
#[cfg(not(cenote_model))]
mod pool;
#[cfg(not(cenote_model))]
mod recording;
#[cfg(not(cenote_model))]
mod spans;
#[cfg(not(cenote_model))]
mod worlds;
