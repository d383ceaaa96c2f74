//! What needs the event loop of mio, or callers that are threads.

mod embedded;
mod threads;
