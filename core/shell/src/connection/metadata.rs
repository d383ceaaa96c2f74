//! Who the client says it is in hello, which may grow while a pool is in use.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cenote_core::connect::{ClientMetadata, DriverInfo, EstablishOptions};
use cenote_core::uri::ConnectionString;

/// What every new connection says of the client (HS-30).
pub struct ClientMetadataStore(Mutex<Said>);

struct Said {
    client: ClientMetadata,
    options: Arc<EstablishOptions>,
    /// The same for monitors, which all of a client share.
    monitoring: Arc<EstablishOptions>,
}

impl ClientMetadataStore {
    /// What `uri` and `client` say.
    pub fn new(uri: &ConnectionString, client: &ClientMetadata) -> Self {
        let options = Arc::new(EstablishOptions::new(uri, client));
        let monitoring = Arc::new(options.for_monitor());
        Self(Mutex::new(Said { client: client.clone(), options, monitoring }))
    }

    /// What a connection that is opened now needs to know.
    pub fn options(&self) -> Arc<EstablishOptions> {
        Arc::clone(&self.lock().options)
    }

    /// What a monitor's connection that is opened now needs to know: no credential (SD-51).
    pub fn monitor_options(&self) -> Arc<EstablishOptions> {
        Arc::clone(&self.lock().monitoring)
    }

    /// From now on a driver or library is told of, too; says whether it was not before.
    pub fn append(&self, driver: DriverInfo) -> bool {
        let Said { client, options, monitoring } = &mut *self.lock();
        let is_new = client.append(driver);
        if is_new {
            // Connections that are being opened keep what they have.
            Arc::make_mut(options).client = client.to_document();
            *monitoring = Arc::new(options.for_monitor());
        }
        is_new
    }

    fn lock(&self) -> MutexGuard<'_, Said> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for ClientMetadataStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientMetadataStore").finish_non_exhaustive()
    }
}
