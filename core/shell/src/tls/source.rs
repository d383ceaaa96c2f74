//! What TLS needs of files, which may change while the program runs: certificates are renewed.

use std::fs;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use cenote_core::error::ConnectionError;
use cenote_core::uri::TlsOptions;
use rustls::ClientConfig;

use super::config;
use crate::log;

/// The configuration of new connections. The files of `tlsCAFile` and `tlsCertificateKeyFile` are read again when one of
/// them has changed; what cannot be read then leaves the configuration as it was, and is logged once.
#[derive(Debug)]
pub(crate) struct TlsSource {
    options: TlsOptions,
    last: Mutex<Last>,
    /// Held while the files are read.
    reading: Mutex<()>,
}

#[derive(Debug)]
struct Last {
    config: Arc<ClientConfig>,
    files: [Option<State>; 2],
}

/// By which a file is another: when it was written, and its length.
type State = (SystemTime, u64);

impl TlsSource {
    /// Reads the files, which blocks.
    pub(crate) fn new(options: TlsOptions) -> Result<Self, ConnectionError> {
        // Before they are read: what changes meanwhile is read again.
        let files = files(&options);
        let config = Arc::new(config(&options)?);
        Ok(Self { options, last: Mutex::new(Last { config, files }), reading: Mutex::default() })
    }

    /// Whether [`refresh`](Self::refresh) has anything to look at.
    pub(crate) const fn has_files(&self) -> bool {
        self.options.ca_file.is_some() || self.options.certificate_key_file.is_some()
    }

    /// For a connection that is opened now.
    pub(crate) fn config(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.last().config)
    }

    /// Looks at the files, which blocks, unless another connection does so already.
    pub(crate) fn refresh(&self) {
        let Ok(_reading) = self.reading.try_lock() else { return };
        let files = files(&self.options);
        if self.last().files == files {
            return;
        }
        let read = config(&self.options);
        let mut last = self.last();
        last.files = files;
        match read {
            Ok(config) => last.config = Arc::new(config),
            Err(error) => {
                drop(last);
                log::tls_not_renewed(&error);
            }
        }
    }

    fn last(&self) -> MutexGuard<'_, Last> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn files(options: &TlsOptions) -> [Option<State>; 2] {
    [&options.ca_file, &options.certificate_key_file].map(|path| {
        let metadata = fs::metadata(path.as_ref()?).ok()?;
        Some((metadata.modified().ok()?, metadata.len()))
    })
}
