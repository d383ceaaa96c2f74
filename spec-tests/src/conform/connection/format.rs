//! What a file looks like.

use std::collections::BTreeMap;

use cenote_core::connect::{ClientMetadata, Environment};
use cenote_core::uri::ConnectionString;
use serde::Deserialize;

use super::operation::Operation;
use super::script::Script;
use crate::conform::requirement::RequirementId;
use crate::conform::{Document, Target, Unreadable};

/// One file: one test.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct File {
    pub(super) description: String,
    #[serde(rename = "requirements")]
    _requirements: Vec<RequirementId>,
    /// Targets on which it cannot be played, and why.
    #[serde(default)]
    pub(super) not_on: BTreeMap<Target, String>,
    /// With [`SERVER`] for where the server is.
    uri: String,
    /// Where the client runs, as far as it tells servers.
    #[serde(default)]
    environment: Surroundings,
    /// The version of the server's API that the client declares.
    pub(super) server_api: Option<ServerApi>,
    /// The password of the one user there is, as the server knows it.
    #[serde(default = "pencil")]
    pub(super) password: String,
    /// What nobody may be shown, in errors, events or log messages (LG-56).
    #[serde(default)]
    pub(super) secrets: Vec<String>,
    /// The server accepts nobody, and nobody else finds room to wait for it: whoever connects hears
    /// nothing.
    #[serde(default)]
    pub(super) is_full: bool,
    /// What the server does on each connection, in the order in which they are opened.
    pub(super) connections: Vec<Script>,
    pub(super) operations: Vec<Operation>,
}

/// Stands for the server's host and port.
const SERVER: &str = "{server}";
/// Stands for the server's port, such as that of a proxy.
const PORT: &str = "{port}";
/// Stands for the file of the authority that has signed the server's certificate.
const CA_FILE: &str = "{caFile}";

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Surroundings {
    os_type: Option<String>,
    os_name: Option<String>,
    os_version: Option<String>,
    architecture: Option<String>,
    #[serde(default)]
    variables: BTreeMap<String, String>,
    #[serde(default)]
    dockerenv: bool,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ServerApi {
    pub(super) strict: Option<bool>,
    pub(super) deprecation_errors: Option<bool>,
}

fn pencil() -> String {
    "pencil".to_owned()
}

impl File {
    /// # Errors
    ///
    /// What is wrong, and where.
    pub(super) fn from_document(document: &Document) -> Result<Self, Unreadable> {
        let file: Self = document.parse()?;
        let refuse = |place: &str, reason: &str| Err(document.refuse(place, reason));
        if file.not_on.len() == Target::ALL.len() || file.not_on.values().any(String::is_empty) {
            let reason = "it is played somewhere, and for each target where not, there is a reason";
            return refuse("notOn", reason);
        }
        if file.is_full && !file.connections.is_empty() {
            return refuse("isFull", "nobody gets through to such a server");
        }
        if file.operations.is_empty() {
            return refuse("operations", "a client that does nothing shows nothing");
        }
        for (index, script) in file.connections.iter().enumerate() {
            if let Err(reason) = script.check() {
                return Err(document.refuse_in(&format!("connections/{index}"), &reason));
            }
        }
        for (index, operation) in file.operations.iter().enumerate() {
            if let Err(reason) = operation.check() {
                return Err(document.refuse_in(&format!("operations/{index}"), &reason));
            }
        }
        let unknown = |name: &&String| !Environment::VARIABLES.contains(&name.as_str());
        if let Some(name) = file.environment.variables.keys().find(unknown) {
            return refuse(&format!("environment/variables/{name}"), "nobody looks at it");
        }
        if let Err(reason) = file.uri(27017, "/ca.pem") {
            return refuse("uri", &reason);
        }
        Ok(file)
    }

    /// The connection string for a server on this port of the loopback interface.
    ///
    /// # Errors
    ///
    /// It is none.
    pub(super) fn uri(&self, port: u16, ca_file: &str) -> Result<ConnectionString, String> {
        let uri = ConnectionString::parse(&self.uri_text(port, ca_file));
        uri.map_err(|error| error.to_string())
    }

    /// The same as a text.
    pub(super) fn uri_text(&self, port: u16, ca_file: &str) -> String {
        let uri = self.uri.replace(SERVER, &format!("localhost:{port}"));
        uri.replace(PORT, &port.to_string()).replace(CA_FILE, ca_file)
    }

    /// Who the client says it is.
    ///
    /// # Errors
    ///
    /// An application's name that is too long.
    pub(super) fn client(&self, uri: &ConnectionString) -> Result<ClientMetadata, String> {
        let its = self.environment.clone();
        let environment = Environment {
            os_type: its.os_type,
            os_name: its.os_name,
            os_version: its.os_version,
            architecture: its.architecture,
            variables: its.variables,
            has_dockerenv: its.dockerenv,
        };
        let client = ClientMetadata::new(uri.app_name.as_deref(), &environment);
        client.map_err(|error| error.to_string())
    }
}
