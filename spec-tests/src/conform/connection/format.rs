//! What a file looks like.

use std::collections::BTreeMap;
use std::time::Duration;

use cenote_core::connect::{ClientMetadata, Environment, ServerApi};
use cenote_core::pool::PoolOptions;
use cenote_core::uri::ConnectionString;
use serde::Deserialize;

use super::operation::Operation;
use super::script::Script;
use cenote_conform::{Document, NotOn, RequirementId, Unreadable};

use crate::conform::target::Target;

/// One file: one test.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct File {
    pub(super) description: String,
    #[serde(rename = "requirements")]
    _requirements: Vec<RequirementId>,
    /// Targets on which it cannot be played, and why.
    #[serde(default)]
    pub(super) not_on: NotOn,
    /// With [`SERVER`] for where the server is.
    uri: String,
    /// Where the client runs, as far as it tells servers.
    #[serde(default)]
    environment: Surroundings,
    /// The version of the server's API that the client declares.
    server_api: Option<DeclaredApi>,
    /// The password of the one user there is, as the server knows it.
    #[serde(default = "pencil")]
    pub(super) password: String,
    /// What must not appear in errors, events or log messages.
    #[serde(default)]
    pub(super) secrets: Vec<String>,
    /// The server accepts no connection and its backlog is full: a client that connects gets no answer.
    #[serde(default)]
    pub(super) is_full: bool,
    /// What the server does on each connection, in the order in which they are opened.
    pub(super) connections: Vec<Script>,
    /// The same of further servers, each by itself.
    #[serde(default)]
    pub(super) other_servers: Vec<Vec<Script>>,
    /// What the program sets besides the connection string, of whose options nothing is left then.
    options: Option<Options>,
    pub(super) operations: Vec<Operation>,
}

/// Stands for the server's host and port; that of another one is `{server2}`, and so on.
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

/// Options of pools.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Options {
    max_pool_size: Option<u32>,
    min_pool_size: Option<u32>,
    #[serde(rename = "maxIdleTimeMS")]
    max_idle_time_ms: Option<u64>,
    max_connecting: Option<u32>,
    #[serde(rename = "waitQueueTimeoutMS")]
    wait_queue_timeout_ms: Option<u64>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct DeclaredApi {
    strict: Option<bool>,
    deprecation_errors: Option<bool>,
}

fn pencil() -> String {
    "pencil".to_owned()
}

/// What stands for a server in the connection string.
fn name(index: usize) -> String {
    if index == 0 { SERVER.to_owned() } else { format!("{{server{}}}", index + 1) }
}

impl File {
    /// The version of the API that the client declares.
    pub(super) fn server_api(&self) -> Option<ServerApi> {
        self.server_api.map(|DeclaredApi { strict, deprecation_errors }| ServerApi {
            strict,
            deprecation_errors,
        })
    }

    /// # Errors
    ///
    /// What is wrong, and where.
    pub(super) fn from_document(document: &Document) -> Result<Self, Unreadable> {
        let file: Self = document.parse()?;
        Target::check(&file.not_on, document)?;
        let refuse = |place: &str, reason: &str| Err(document.refuse(place, reason));
        if file.is_full && !file.connections.is_empty() {
            return refuse("isFull", "such a server accepts no connection");
        }
        if file.operations.is_empty() {
            return refuse("operations", "a client that does nothing shows nothing");
        }
        if file.is_full && !file.other_servers.is_empty() {
            return refuse("otherServers", "a full server has to be the only one");
        }
        let others = file.other_servers.iter().enumerate();
        let others = others.map(|(index, its)| (format!("otherServers/{index}"), its));
        for (place, scripts) in
            std::iter::once(("connections".to_owned(), &file.connections)).chain(others)
        {
            for (index, script) in scripts.iter().enumerate() {
                if let Err(reason) = script.check() {
                    return Err(document.refuse_in(&format!("{place}/{index}"), &reason));
                }
            }
        }
        let servers = file.servers().count();
        for (index, operation) in file.operations.iter().enumerate() {
            let before = file.operations.get(..index).unwrap_or_default();
            if let Err(reason) = operation.check(servers, before) {
                return Err(document.refuse_in(&format!("operations/{index}"), &reason));
            }
        }
        if let Some(name) = (1..servers).map(name).find(|name| !file.uri.contains(name)) {
            return refuse("uri", &format!("it does not contain {name}"));
        }
        if let Err(reason) = file.pool_options().validate() {
            return refuse("options", &reason.to_string());
        }
        let unknown = |name: &&String| !Environment::VARIABLES.contains(&name.as_str());
        if let Some(name) = file.environment.variables.keys().find(unknown) {
            return refuse(&format!("environment/variables/{name}"), "the client does not read it");
        }
        if let Err(reason) = file.uri(&vec![27017; servers], "/ca.pem") {
            return refuse("uri", &reason);
        }
        Ok(file)
    }

    /// What each server does, the first one first.
    pub(super) fn servers(&self) -> impl Iterator<Item = &Vec<Script>> {
        std::iter::once(&self.connections).chain(&self.other_servers)
    }

    /// The connection string for servers on these ports of the loopback interface.
    ///
    /// # Errors
    ///
    /// It is none.
    pub(super) fn uri(&self, ports: &[u16], ca_file: &str) -> Result<ConnectionString, String> {
        let uri = ConnectionString::parse(&self.uri_text(ports, ca_file));
        let mut uri = uri.map_err(|error| error.to_string())?;
        if self.options.is_some() {
            let load_balanced = uri.pool.load_balanced;
            uri.pool = self.pool_options();
            uri.pool.load_balanced = load_balanced;
        }
        Ok(uri)
    }

    /// The same as a text, without what the program sets.
    pub(super) fn uri_text(&self, ports: &[u16], ca_file: &str) -> String {
        let mut uri = self.uri.replace(CA_FILE, ca_file);
        for (index, port) in ports.iter().enumerate() {
            uri = uri.replace(&name(index), &format!("localhost:{port}"));
        }
        let port = ports.first().map(u16::to_string).unwrap_or_default();
        uri.replace(PORT, &port)
    }

    /// What the program sets, if it does.
    pub(super) fn set_options(&self) -> Option<PoolOptions> {
        self.options.is_some().then(|| self.pool_options())
    }

    fn pool_options(&self) -> PoolOptions {
        let mut options = PoolOptions::default();
        let Some(its) = self.options else { return options };
        options.max_pool_size = its.max_pool_size;
        options.min_pool_size = its.min_pool_size;
        options.max_idle_time = its.max_idle_time_ms.map(Duration::from_millis);
        options.max_connecting = its.max_connecting;
        options.wait_queue_timeout = its.wait_queue_timeout_ms.map(Duration::from_millis);
        options
    }

    /// The metadata of the client.
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
