//! Log records, as values: shells hand them to a logging framework, or print them.
//!
//! | component | records | of |
//! |---|---|---|
//! | connection | [`LogRecord::new`] | the events of a pool |
//! | topology | [`LogRecord::of_topology`], [`LogRecord::of_heartbeat`] | the events of a topology and of monitors (feature `protocol`) |
//! | serverSelection | [`Selection`] | what a client does to find a server (feature `protocol`) |
//!
//! Each event has one message, at the moment of the event. So a shell that logs each event as it carries out
//! [`EmitEvent`](crate::pool::Action::EmitEvent) has nothing else to remember:
//!
//! ```
//! use cenote_core::address::ServerAddress;
//! use cenote_core::log::{LogRecord, LogSettings, Threshold};
//! use cenote_core::pool::Event;
//!
//! let threshold = Threshold::from_variables(Some("debug"), None);
//! let settings = LogSettings::default();
//! let address: ServerAddress = "db1.example.com".parse()?;
//!
//! let event = Event::<&str>::ConnectionCreated { connection_id: 7 };
//! if threshold.admits(LogRecord::SEVERITY) {
//!     let record = LogRecord::new(&event, &address, &settings);
//!     assert_eq!(
//!         record.to_string(),
//!         "Connection created: address=db1.example.com:27017, driver-generated ID=7"
//!     );
//! }
//! # Ok::<(), cenote_core::address::AddressError>(())
//! ```
//!
//! `docs/logging.md` shows an example of each record.
//!
//! No secret can get into a record: it holds addresses, numbers, the options of a pool, fixed
//! texts, descriptions of servers with the replies to hello of their monitors, which do not authenticate, and what the
//! `Display` of an error says. A [`PoolError`](crate::error::PoolError) adds
//! nothing to its cause but the address, and a [`ConnectionError`](crate::error::ConnectionError)
//! says what the shell and the server put into it, on one line. A shell with causes of its own is
//! responsible for their texts.

mod component;
#[cfg(feature = "protocol")]
mod extended_json;
mod pool;
mod record;
#[cfg(feature = "protocol")]
mod selection;
mod settings;
mod severity;
mod template;
#[cfg(feature = "protocol")]
mod topology;
mod value;

pub use component::Component;
#[cfg(feature = "protocol")]
pub use extended_json::ExtendedJson;
pub use record::LogRecord;
#[cfg(feature = "protocol")]
pub use selection::Selection;
pub use settings::LogSettings;
pub use severity::{Severity, Threshold};
pub use value::LogValue;
