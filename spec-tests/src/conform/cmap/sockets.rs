//! What every shell has that plays files on real sockets: a server, and the way to it.

use bson::rawdoc;
use cenote_core::address::ServerAddress;
use cenote_core::uri::ConnectionString;
use cenote_endpoint::{
    Certificates, Endpoint, ListenOptions, LoadBalanced, Settings, Topology, User,
};

use super::format::{File, Options, SERVICES};
use super::log::Log;
use crate::conform::logs::{Listening, Message};
use crate::conform::{Foreign, Place};

/// A server that does wrong what the file wants, for as long as this is there (TF-16).
pub(super) enum Server {
    /// It goes with the file, and its fail point with it.
    Own(Endpoint),
    /// It stays, and its fail point is switched off.
    Foreign { server: Box<Foreign>, fails: bool },
}

impl Server {
    /// # Errors
    ///
    /// Whatever keeps an endpoint from listening, or a server from taking the fail point.
    pub(super) fn start(file: &File, place: &Place) -> Result<Self, String> {
        let server = match place {
            Place::Endpoint => {
                let endpoint = endpoint(file).map(Self::Own);
                return endpoint.map_err(|error| format!("no endpoint to play against: {error}"));
            }
            Place::Server(server) => server,
        };
        if let Some(fail_point) = &file.fail_point {
            let command = fail_point.command().map_err(|error| error.to_string())?;
            server.order(&command)?;
        }
        Ok(Self::Foreign { server: server.clone(), fails: file.fail_point.is_some() })
    }

    /// Where it is.
    pub(super) fn address(&self) -> ServerAddress {
        match self {
            Self::Own(endpoint) => endpoint.address(),
            Self::Foreign { server, .. } => match server.uri().hosts.first() {
                Some(address) => address.clone(),
                None => unreachable!("it was reached before"),
            },
        }
    }

    /// How many connections it has, if it can be asked without one more.
    pub(super) fn open(&self) -> Option<u64> {
        match self {
            Self::Own(endpoint) => Some(endpoint.with(|server, _now| server.statistics()).open),
            Self::Foreign { .. } => None,
        }
    }

    /// The connection string, as a client with these options has it.
    ///
    /// # Errors
    ///
    /// When it is none.
    pub(super) fn uri(&self, options: &Options) -> Result<ConnectionString, String> {
        let mut uri = match self {
            Self::Own(endpoint) => {
                ConnectionString::parse(&endpoint.uri()).map_err(|error| error.to_string())?
            }
            Self::Foreign { server, .. } => server.uri().clone(),
        };
        uri.app_name.clone_from(&options.app_name);
        Ok(uri)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Self::Foreign { server, fails: true } = self {
            // If the server is gone, so is its fail point.
            let _ = server.order(&rawdoc! { "configureFailPoint": "failCommand", "mode": "off" });
        }
    }
}

/// Whoever hears what is logged, if the file asks for that.
pub(super) struct Ears<'f>(Option<(&'f Log, Listening)>);

impl<'f> Ears<'f> {
    /// To be opened before the pool is made.
    ///
    /// # Errors
    ///
    /// What a file wants of the log that no shell can do, and that nobody can listen.
    pub(super) fn of(file: &'f File, address: &ServerAddress) -> Result<Self, String> {
        let Some(log) = &file.log else { return Ok(Self(None)) };
        log.for_shells()?;
        let port = address.port().ok_or("a server without a port")?;
        Ok(Self(Some((log, Listening::begin(port)?))))
    }

    /// What was logged, as far as it is wanted.
    pub(super) fn heard(&self) -> Vec<Message> {
        let Some((log, listening)) = &self.0 else { return Vec::new() };
        log.wanted(listening.heard())
    }
}

fn endpoint(file: &File) -> Result<Endpoint, Box<dyn std::error::Error>> {
    // By certificate: SCRAM takes its time on purpose, which is not what files are about.
    let users = vec![User::x509(Certificates::CLIENT_SUBJECT)];
    let topology = if file.pool_options.is_load_balanced() {
        Topology::LoadBalanced(LoadBalanced { services: SERVICES })
    } else {
        Topology::Standalone
    };
    let settings = Settings { auth: true, users, topology, ..Settings::default() };
    let endpoint = Endpoint::start(settings, ListenOptions::with_tls())?;
    if let Some(fail_point) = &file.fail_point {
        let command = fail_point.command()?;
        endpoint.with(|server, _now| server.set_fail_point(&command))?;
    }
    Ok(endpoint)
}
