//! SecantusDB as a child process.

use std::env;
use std::ffi::OsString;
use std::process::Command;

use bson::RawDocumentBuf;
use tempfile::TempDir;

use crate::secantus::certificates::Certificates;
use crate::secantus::open;
use crate::secantus::process::Process;

/// A running server.
pub(crate) struct Server {
    process: Process,
    port: u16,
    folder: TempDir,
}

/// What a server shall do besides.
#[derive(Default)]
pub(crate) struct Options<'a> {
    pub(crate) auth: bool,
    pub(crate) tls: Option<Tls<'a>>,
}

#[derive(Clone, Copy)]
pub(crate) struct Tls<'a> {
    pub(crate) certificates: &'a Certificates,
    /// Whether clients are asked for a certificate, and whether they must have one.
    pub(crate) client: ClientCertificate,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClientCertificate {
    NotAsked,
    Optional,
    Required,
}

impl Server {
    /// Without TLS and users.
    pub(crate) fn plain() -> Self {
        Self::start(&Options::default())
    }

    pub(crate) fn start(options: &Options<'_>) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        Self::start_in(folder, options)
    }

    /// A server that has these users and requires authentication.
    pub(crate) fn with_users(users: &[(&str, RawDocumentBuf)], options: &Options<'_>) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let server = Self::start_in(folder, &Options::default());
        let mut connection = open(&server.uri("")).expect("a connection");
        for (database, create_user) in users {
            connection.command(database, create_user).expect("a new user");
        }
        drop(connection);
        let Self { process, folder, .. } = server;
        process.stop();
        Self::start_in(folder, &Options { auth: true, tls: options.tls })
    }

    fn start_in(folder: TempDir, options: &Options<'_>) -> Self {
        let mut command = Command::new(program());
        command.args(["--host", "127.0.0.1", "--port", "0", "--cache-size", "64M"]);
        command.arg("--enable-test-commands").arg("--storage-path").arg(folder.path());
        // Where it would look for a configuration.
        command.current_dir(folder.path()).env("HOME", folder.path());
        if options.auth {
            command.arg("--auth");
        }
        if let Some(Tls { certificates, client }) = options.tls {
            command.arg("--tls-cert-file").arg(certificates.server_file());
            command.arg("--tls-key-file").arg(certificates.server_key_file());
            if client != ClientCertificate::NotAsked {
                command.arg("--tls-ca-file").arg(certificates.ca_file());
            }
            if client == ClientCertificate::Required {
                command.arg("--tls-require-client-cert");
            }
        }
        let mut process = Process::start(&mut command);
        let port = process.wait_for(|line| {
            let (_, address) = line.split_once(" listening on 127.0.0.1:")?;
            address.split_whitespace().next()?.parse().ok()
        });
        Self { process, port, folder }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// The connection string for its address with this query, which starts without `?`.
    pub(crate) fn uri(&self, query: &str) -> String {
        self.uri_as("", query)
    }

    /// As [`uri`](Self::uri), with `user:password`.
    pub(crate) fn uri_as(&self, userinfo: &str, query: &str) -> String {
        let at = if userinfo.is_empty() { "" } else { "@" };
        format!("mongodb://{userinfo}{at}127.0.0.1:{}/?{query}", self.port)
    }
}

/// There is no default: a test that finds no server must not pass.
fn program() -> OsString {
    env::var_os("CENOTE_SECANTUS")
        .expect("CENOTE_SECANTUS is the path of secantusd-py; .ci/clients installs it and sets it")
}
