//! The machines, conversations, connection strings and texts, without sockets or threads. One executable: each costs
//! seconds to link.

mod client;
mod client_machine;
mod connect;
mod embedding;
mod error_table;
mod errors;
mod fingerprint;
mod hostile_texts;
mod log;
mod monitor;
mod needs_now;
mod outbox;
mod pool_errors;
mod reply_properties;
mod rules;
mod set_options;
mod shown;
mod srv;
mod srv_hosts;
mod srv_polling;
mod topology;
mod uri;
mod uri_refused;
mod uri_secrecy;
