//! What pages, packages and workflows say of the code.

mod options;
mod packages;
mod reports;
mod requirements;
