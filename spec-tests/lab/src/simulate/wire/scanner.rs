//! Searches everything that is visible of a world for secrets.

use std::error::Error;
use std::fmt::{Debug, Write as _};

use cenote_core::error::ConnectionError;

use super::secrets::Secrets;

/// Searches texts for secrets, and keeps the first finding.
#[derive(Default)]
pub(super) struct Scanner {
    pub(super) secrets: Secrets,
    /// The number of inputs of all state machines: the pool, the monitor, establishing connections.
    pub(super) inputs: u64,
    /// The first secret that was visible, and where.
    found: Option<String>,
    text: String,
    /// The `Debug` output of a connection before its reply was processed.
    connection: String,
}

const A_CONNECTION: &str = "a connection";

impl Scanner {
    /// Scans `Debug` output.
    pub(super) fn scan(&mut self, what: &str, value: &impl Debug) {
        self.text.clear();
        // Writing to memory does not fail.
        let _ = write!(self.text, "{value:?}");
        self.search(what);
    }

    /// Scans a connection, and keeps its `Debug` output.
    pub(super) fn scan_connection(&mut self, value: &impl Debug) {
        self.scan(A_CONNECTION, value);
        self.connection.clone_from(&self.text);
    }

    /// Scans that output again, now that the reply has revealed more secrets.
    pub(super) fn scan_connection_again(&mut self) {
        self.text.clone_from(&self.connection);
        self.search(A_CONNECTION);
    }

    /// Scans a text.
    pub(super) fn scan_text(&mut self, what: &str, line: &str) {
        self.text.clear();
        self.text.push_str(line);
        self.search(what);
    }

    /// Scans an error and its sources.
    pub(super) fn scan_error(&mut self, error: &ConnectionError) {
        self.text.clear();
        let _ = write!(self.text, "{error} {error:?} {}", error.reason());
        let mut source = error.source();
        while let Some(error) = source {
            let _ = write!(self.text, " {error} {error:?}");
            source = error.source();
        }
        self.search("an error");
    }

    /// Scans a file.
    pub(super) fn scan_bytes(&mut self, what: &str, bytes: &[u8]) {
        if let Some(secret) = self.secrets.found_in_bytes(bytes) {
            self.found.get_or_insert_with(|| format!("{secret} is in {what}"));
        }
    }

    /// Fails if a secret was visible so far.
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
