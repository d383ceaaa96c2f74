//! The [server](crate::server) behind TLS, with a certificate of its own.

use std::net::SocketAddr;
use std::sync::Arc;

use tempfile::NamedTempFile;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::{
    ClientConfig, RootCertStore, ServerConfig, ServerConnection, StreamOwned,
};

use crate::server::serve_with;

pub(crate) struct Tls {
    pub(crate) address: SocketAddr,
    /// The certificate that clients trust, as `tlsCAFile`.
    pub(crate) file: NamedTempFile,
    pub(crate) client: TlsConnector,
}

/// Listens on a free port of `localhost`.
pub(crate) fn serve() -> Tls {
    let own = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a name");
    let file = NamedTempFile::new().expect("a temporary file");
    std::fs::write(file.path(), own.cert.pem()).expect("the file was just made");
    let key = own.signing_key.serialize_der().try_into().expect("a key");
    let server = ServerConfig::builder().with_no_client_auth();
    let server = server.with_single_cert(vec![own.cert.der().clone()], key).expect("its key");
    let server = Arc::new(server);
    let mut roots = RootCertStore::empty();
    roots.add(own.cert.der().clone()).expect("a certificate");
    let client = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    let address = serve_with(move |socket| {
        let connection = ServerConnection::new(Arc::clone(&server)).expect("a good configuration");
        StreamOwned::new(connection, socket)
    });
    Tls { address, file, client: TlsConnector::from(Arc::new(client)) }
}
