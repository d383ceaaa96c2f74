//! The commands of `cenote`, as people and scripts use them.

mod check;
mod conform;
mod endpoint;
mod replay;
mod run;
mod top;
