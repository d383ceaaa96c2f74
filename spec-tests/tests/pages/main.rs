//! What pages, packages and workflows say of the code.

mod options;
mod packages;
mod readme;
mod reports;
mod requirements;
