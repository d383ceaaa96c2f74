//! Who looks at everything that can be seen of a world, for secrets.

use std::error::Error;
use std::fmt::{Debug, Write as _};

use cenote_core::error::ConnectionError;

use super::secrets::Secrets;

/// See the module.
#[derive(Default)]
pub(super) struct Witness {
    pub(super) secrets: Secrets,
    /// Fed to the pool's machine, the monitor's and those that establish connections.
    pub(super) inputs: u64,
    /// The first secret that was shown, and where.
    found: Option<String>,
    text: String,
    /// What a connection showed before its reply was taken.
    connection: String,
}

const A_CONNECTION: &str = "a connection";

impl Witness {
    /// Looks at whatever can be printed with `{:?}`.
    pub(super) fn look_at(&mut self, what: &str, shown: &impl Debug) {
        self.text.clear();
        // Into memory, which does not fail.
        let _ = write!(self.text, "{shown:?}");
        self.search(what);
    }

    /// Looks at a connection, and keeps what it showed.
    pub(super) fn look_at_connection(&mut self, shown: &impl Debug) {
        self.look_at(A_CONNECTION, shown);
        self.connection.clone_from(&self.text);
    }

    /// Looks at what the connection showed once more: the reply that it had by then has told secrets.
    pub(super) fn look_at_connection_again(&mut self) {
        self.text.clone_from(&self.connection);
        self.search(A_CONNECTION);
    }

    /// Looks at a line.
    pub(super) fn read(&mut self, what: &str, line: &str) {
        self.text.clear();
        self.text.push_str(line);
        self.search(what);
    }

    /// Looks at an error, and at all that is behind it.
    pub(super) fn look_at_error(&mut self, error: &ConnectionError) {
        self.text.clear();
        let _ = write!(self.text, "{error} {error:?} {}", error.reason());
        let mut source = error.source();
        while let Some(error) = source {
            let _ = write!(self.text, " {error} {error:?}");
            source = error.source();
        }
        self.search("an error");
    }

    /// Looks at a file.
    pub(super) fn look_at_bytes(&mut self, what: &str, bytes: &[u8]) {
        if let Some(secret) = self.secrets.found_in_bytes(bytes) {
            self.found.get_or_insert_with(|| format!("{secret} is in {what}"));
        }
    }

    /// The verdict on all that was seen so far.
    pub(super) fn verdict(&self) -> Result<(), String> {
        match &self.found {
            Some(found) => Err(found.clone()),
            None => Ok(()),
        }
    }

    fn search(&mut self, what: &str) {
        if let Some(secret) = self.secrets.found_in(&self.text) {
            let text = &self.text;
            self.found.get_or_insert_with(|| format!("{secret} is in {what}: {text}"));
        }
    }
}
