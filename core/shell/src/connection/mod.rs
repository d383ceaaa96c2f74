//! How connections are opened, as far as no socket is needed for it: what a connection string says of
//! them, how long that may take, hello and authentication, and what one may do with them.

mod handshake;
mod limit;
mod metadata;
mod operation;
mod settings;

pub use self::handshake::{Talk, establish, greet};
pub use self::limit::{Deadline, Limit};
pub use self::metadata::ClientMetadataStore;
pub use self::operation::{fault, has_to_be_unacknowledged, judge};
pub use self::settings::Settings;
