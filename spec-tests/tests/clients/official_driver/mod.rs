//! The official Rust driver against the endpoint in this process. It was written by others and
//! shares no code with this project but the BSON library.

mod client;
mod fail_points;
mod load_balanced;
mod login;
mod monitoring;
mod work;
