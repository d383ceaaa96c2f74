use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cenote_core::connect::{
    ClientMetadata, DriverInfo, EstablishOptions, SaslMechanism, ServerApi,
};
use cenote_core::error::ConnectionError;
use cenote_core::uri::{ConnectionString, Credential};

/// What hello and authentication say: the client metadata may grow and the credential may change while a pool is in
/// use.
pub(super) struct ClientMetadataStore(Mutex<Stored>);

struct Stored {
    client: ClientMetadata,
    options: Arc<EstablishOptions>,
    /// The same for monitors, without a credential.
    monitoring: Arc<EstablishOptions>,
}

impl ClientMetadataStore {
    pub(super) fn new(uri: &ConnectionString, client: &ClientMetadata) -> Self {
        let options = Arc::new(EstablishOptions::new(uri, client));
        let monitoring = Arc::new(options.for_monitor());
        Self(Mutex::new(Stored { client: client.clone(), options, monitoring }))
    }

    pub(super) fn options(&self) -> Arc<EstablishOptions> {
        Arc::clone(&self.lock().options)
    }

    pub(super) fn monitor_options(&self) -> Arc<EstablishOptions> {
        Arc::clone(&self.lock().monitoring)
    }

    /// With the options that a TXT record has set, before any connection is opened.
    pub(super) fn resolve(&self, uri: &ConnectionString) {
        let Stored { client, options, monitoring } = &mut *self.lock();
        let mut resolved = EstablishOptions::new(uri, client);
        resolved.server_api = options.server_api;
        resolved.sasl_mechanism = options.sasl_mechanism.clone();
        *monitoring = Arc::new(resolved.for_monitor());
        *options = Arc::new(resolved);
    }

    pub(super) fn declare(&self, api: ServerApi) {
        let Stored { options, monitoring, .. } = &mut *self.lock();
        Arc::make_mut(options).server_api = Some(api);
        *monitoring = Arc::new(options.for_monitor());
    }

    pub(super) fn authenticate_by(&self, mechanism: Arc<dyn SaslMechanism>) {
        Arc::make_mut(&mut self.lock().options).sasl_mechanism = Some(mechanism);
    }

    /// For connections that are opened from now on.
    pub(super) fn replace_credential(
        &self,
        credential: Credential,
        check: impl FnOnce(&EstablishOptions) -> Result<(), ConnectionError>,
    ) -> Result<(), ConnectionError> {
        let Stored { options, .. } = &mut *self.lock();
        let mut replaced = EstablishOptions::clone(options);
        replaced.credential = Some(credential);
        check(&replaced)?;
        *options = Arc::new(replaced);
        Ok(())
    }

    /// Returns whether the driver is new.
    // HS-30
    pub(super) fn append(&self, driver: DriverInfo) -> bool {
        let Stored { client, options, monitoring } = &mut *self.lock();
        let is_new = client.append(driver);
        if is_new {
            // Connections that are being opened keep what they have.
            Arc::make_mut(options).client = client.to_document();
            *monitoring = Arc::new(options.for_monitor());
        }
        is_new
    }

    fn lock(&self) -> MutexGuard<'_, Stored> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
