//! What pages, packages and workflows say of the code.

mod packages;
mod requirements;
