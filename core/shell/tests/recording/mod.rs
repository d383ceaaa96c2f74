//! What is recorded, where it is written, and what becomes of the pool if it cannot be.

mod cases;
mod dumps;
mod panics;
pub(crate) mod shared_buffer;
