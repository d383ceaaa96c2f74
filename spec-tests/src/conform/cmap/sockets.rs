//! What every shell has that plays files on real sockets: an endpoint, and the way to it.

use cenote_core::uri::ConnectionString;

use super::format::{File, Options};
use crate::endpoint::{Certificates, Endpoint, ListenOptions, Settings, User};

/// An endpoint that does wrong what the file wants. It goes with the file, and its fail point with
/// it (TF-16).
///
/// # Errors
///
/// Whatever keeps it from listening.
pub(super) fn endpoint(file: &File) -> Result<Endpoint, String> {
    start(file).map_err(|error| format!("no endpoint to play against: {error}"))
}

fn start(file: &File) -> Result<Endpoint, Box<dyn std::error::Error>> {
    // By certificate: SCRAM takes its time on purpose, which is not what files are about.
    let users = vec![User::x509(Certificates::CLIENT_SUBJECT)];
    let settings = Settings { auth: true, users, ..Settings::default() };
    let endpoint = Endpoint::start(settings, ListenOptions::with_tls())?;
    if let Some(fail_point) = &file.fail_point {
        let command = fail_point.command()?;
        endpoint.with(|server, _now| server.set_fail_point(&command))?;
    }
    Ok(endpoint)
}

/// The endpoint's connection string, as a client with these options has it.
pub(super) fn uri(endpoint: &Endpoint, options: &Options) -> Result<ConnectionString, String> {
    let uri = ConnectionString::parse(&endpoint.uri());
    let mut uri = uri.map_err(|error| error.to_string())?;
    uri.app_name.clone_from(&options.app_name);
    Ok(uri)
}
