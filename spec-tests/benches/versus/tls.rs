//! The [server](crate::server) behind TLS, with a certificate of its own.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use tempfile::NamedTempFile;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::{
    ClientConfig, RootCertStore, ServerConfig, ServerConnection, StreamOwned,
};

use crate::server::serve_with;

/// Listens on a free port of `localhost`, and writes the certificate that clients trust.
pub(crate) fn serve(file: &NamedTempFile) -> SocketAddr {
    let own = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a name");
    std::fs::write(file.path(), own.cert.pem()).expect("the file was just made");
    let key = own.signing_key.serialize_der().try_into().expect("a key");
    let server = ServerConfig::builder().with_no_client_auth();
    let server = server.with_single_cert(vec![own.cert.der().clone()], key).expect("its key");
    let server = Arc::new(server);
    serve_with(move |socket| {
        let connection = ServerConnection::new(Arc::clone(&server)).expect("a good configuration");
        StreamOwned::new(connection, socket)
    })
}

/// A client that trusts this certificate.
pub(crate) fn connector(certificate: &Path) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    let certificate = CertificateDer::from_pem_file(certificate).expect("a certificate");
    roots.add(certificate).expect("a certificate");
    let client = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    TlsConnector::from(Arc::new(client))
}
