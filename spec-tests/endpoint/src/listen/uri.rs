//! The connection string that a client can use as it is.

use std::fmt::Write as _;
use std::path::Path;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::accept::ListenAddress;
use super::certificates::Certificates;
use crate::{Mechanism, Topology, User};

/// What is kept as it is: the unreserved characters of RFC 3986.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// What clients have to know of an endpoint.
#[derive(Debug)]
pub(super) struct Coordinates<'a> {
    pub(super) place: &'a ListenAddress,
    pub(super) topology: &'a Topology,
    pub(super) certificates: Option<&'a Certificates>,
    pub(super) requires_client_certificate: bool,
}

impl Coordinates<'_> {
    /// The connection string for a user, or without a user.
    pub(super) fn uri(&self, user: Option<&User>) -> String {
        let mut options = Vec::new();
        let mut option =
            |name: &str, value: &str| options.push(format!("{name}={}", escape(value)));
        let logs_in_by_certificate =
            user.is_some_and(|user| user.mechanisms == [Mechanism::MongodbX509]);
        if let Some(certificates) = self.certificates {
            option("tls", "true");
            option("tlsCAFile", &text(&certificates.ca_file()));
            if logs_in_by_certificate || self.requires_client_certificate {
                option("tlsCertificateKeyFile", &text(&certificates.client_file()));
            }
        }
        if let Some(user) = user {
            option("authSource", &user.database);
            match user.mechanisms[..] {
                // Negotiated by clients, or there is no other to be tried.
                [Mechanism::ScramSha1 | Mechanism::ScramSha256, ..] | [] => {}
                [
                    mechanism @ (Mechanism::MongodbX509
                    | Mechanism::Plain
                    | Mechanism::MongodbOidc
                    | Mechanism::MongodbAws),
                    ..,
                ] => {
                    option("authMechanism", mechanism.name());
                }
            }
        }
        match self.topology {
            Topology::ReplicaSet(set) => option("replicaSet", &set.name),
            Topology::LoadBalanced(_) => option("loadBalanced", "true"),
            Topology::Standalone | Topology::Mongos => {}
        }
        let mut uri = "mongodb://".to_owned();
        if let Some(user) = user.filter(|_| !logs_in_by_certificate) {
            let _ = write!(uri, "{}:{}@", escape(&user.name), escape(&user.password));
        }
        match self.place {
            ListenAddress::Tcp { port } => {
                let _ = write!(uri, "127.0.0.1:{port}");
            }
            ListenAddress::Unix { path } => uri.push_str(&escape(&text(path))),
        }
        uri.push('/');
        if !options.is_empty() {
            let _ = write!(uri, "?{}", options.join("&"));
        }
        uri
    }
}

fn escape(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
