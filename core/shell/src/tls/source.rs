//! Where the configuration of TLS comes from: the application, or the connection string, with files that may change while
//! the program runs: certificates are renewed.

use std::fs;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::SystemTime;

use cenote_core::error::{ConnectionError, Stage};
use cenote_core::uri::TlsOptions;
use rustls::ClientConfig;
use rustls::crypto::CryptoProvider;

use super::{config, default_provider};
use crate::log;

/// The configuration of new connections: the application's own, or what the connection string says. The files of
/// `tlsCAFile` and `tlsCertificateKeyFile` are read again when one of them has changed; what cannot be read then leaves the
/// configuration as it was, and is logged once.
#[derive(Debug)]
pub(crate) struct TlsSource {
    options: TlsOptions,
    /// The application's own.
    whole: Option<Arc<ClientConfig>>,
    /// The application's own, or what was the default when the files were read first.
    provider: OnceLock<Arc<CryptoProvider>>,
    last: Mutex<Option<Last>>,
    /// Held while the files are read.
    reading: Mutex<()>,
}

#[derive(Debug)]
struct Last {
    config: Arc<ClientConfig>,
    files: Files,
}

type Files = [Option<State>; 2];

/// By which a file is another: when it was written, and its length.
type State = (SystemTime, u64);

impl TlsSource {
    pub(crate) fn new(options: TlsOptions) -> Self {
        let (whole, provider) = (None, OnceLock::new());
        Self { options, whole, provider, last: Mutex::default(), reading: Mutex::default() }
    }

    pub(crate) fn with_provider(&self, provider: Arc<CryptoProvider>) -> Self {
        let (whole, provider) = (self.whole.clone(), OnceLock::from(provider));
        Self { whole, provider, ..Self::new(self.options.clone()) }
    }

    pub(crate) fn with_config(&self, config: Arc<ClientConfig>) -> Self {
        Self { whole: Some(config), ..Self::new(self.options.clone()) }
    }

    /// Whether connections are encrypted.
    pub(crate) fn is_enabled(&self) -> bool {
        self.whole.is_some() || self.options.enabled()
    }

    /// Reads the files, unless they were read, which blocks.
    pub(crate) fn check(&self) -> Result<(), ConnectionError> {
        if self.is_enabled() { self.config().map(drop) } else { Ok(()) }
    }

    /// Whether [`refresh`](Self::refresh) has anything to do.
    pub(crate) fn wants_look(&self) -> bool {
        let Self { options, .. } = self;
        options.ca_file.is_some() || options.certificate_key_file.is_some() || self.last().is_none()
    }

    /// What was read last.
    pub(crate) fn known(&self) -> Option<Arc<ClientConfig>> {
        self.last().as_ref().map(|last| Arc::clone(&last.config))
    }

    /// What was read last, or is read now, which blocks.
    pub(crate) fn config(&self) -> Result<Arc<ClientConfig>, ConnectionError> {
        if let Some(known) = self.known() {
            return Ok(known);
        }
        // The files before what is in them: what changes meanwhile is read again.
        let last = Last { files: files(&self.options), config: self.read()? };
        let config = Arc::clone(&last.config);
        *self.last() = Some(last);
        Ok(config)
    }

    /// Looks at the files, which blocks, unless another connection does so already.
    pub(crate) fn refresh(&self) {
        let Ok(_reading) = self.reading.try_lock() else { return };
        let files = files(&self.options);
        if self.last().as_ref().is_some_and(|last| last.files == files) {
            return;
        }
        let failure = match (self.read(), &mut *self.last()) {
            (Ok(config), last) => {
                *last = Some(Last { config, files });
                None
            }
            (Err(error), Some(last)) => {
                last.files = files;
                Some(error)
            }
            // Nothing has been read yet: it fails the connection.
            (Err(_), None) => None,
        };
        if let Some(error) = failure {
            log::tls_not_renewed(&error);
        }
    }

    fn read(&self) -> Result<Arc<ClientConfig>, ConnectionError> {
        let Some(whole) = &self.whole else {
            let provider = match self.provider.get() {
                Some(provider) => provider,
                None => {
                    let provider = default_provider()?;
                    self.provider.get_or_init(|| provider)
                }
            };
            return config(&self.options, Arc::clone(provider)).map(Arc::new);
        };
        if let Some(option) = contradiction(&self.options) {
            let reason = format!(
                "{option} contradicts `tls_config`, which replaces the connection string's options of TLS: remove one of the two"
            );
            return Err(ConnectionError::configuration(Stage::TlsIo, &reason));
        }
        Ok(Arc::clone(whole))
    }

    fn last(&self) -> MutexGuard<'_, Option<Last>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The option that a whole configuration would ignore.
fn contradiction(options: &TlsOptions) -> Option<&'static str> {
    let given = [
        ("tls=false", options.tls == Some(false)),
        ("tlsCAFile", options.ca_file.is_some()),
        ("tlsCertificateKeyFile", options.certificate_key_file.is_some()),
        ("tlsCertificateKeyFilePassword", options.certificate_key_file_password.is_some()),
        ("tlsInsecure", options.insecure.is_some()),
        ("tlsAllowInvalidCertificates", options.allow_invalid_certificates.is_some()),
        ("tlsAllowInvalidHostnames", options.allow_invalid_hostnames.is_some()),
        ("tlsDisableOCSPEndpointCheck", options.disable_ocsp_endpoint_check.is_some()),
        (
            "tlsDisableCertificateRevocationCheck",
            options.disable_certificate_revocation_check.is_some(),
        ),
    ];
    given.into_iter().find_map(|(option, is_given)| is_given.then_some(option))
}

fn files(options: &TlsOptions) -> Files {
    [&options.ca_file, &options.certificate_key_file].map(|path| {
        let metadata = fs::metadata(path.as_ref()?).ok()?;
        Some((metadata.modified().ok()?, metadata.len()))
    })
}
