//! What a connection that is opened needs to know of the process and of the operating system.

use std::path::Path;

use cenote_core::connect::{Environment, Nonce};
use cenote_core::error::{ConnectionError, Stage};

/// Where the process runs, as far as servers are told (HS-22, HS-24, HS-26). Reads environment
/// variables, and looks for a file.
#[must_use]
pub fn environment() -> Environment {
    let name = match std::env::consts::OS {
        "linux" => "Linux",
        "macos" => "Darwin",
        "windows" => "Windows",
        other => other,
    };
    let variable = |name: &&str| Some(((*name).to_owned(), std::env::var(name).ok()?));
    Environment {
        os_type: Some(name.to_owned()),
        architecture: Some(std::env::consts::ARCH.to_owned()),
        variables: Environment::VARIABLES.iter().filter_map(variable).collect(),
        has_dockerenv: Path::new("/.dockerenv").exists(),
        ..Environment::default()
    }
}

/// What no server has seen before: for one authentication, from the operating system (AU-35).
///
/// # Errors
///
/// When the operating system has no entropy.
pub fn nonce() -> Result<Nonce, ConnectionError> {
    let mut bytes = [0; Nonce::RANDOM_BYTES];
    getrandom::fill(&mut bytes).map_err(|error| {
        ConnectionError::configuration(Stage::Authentication, &error.to_string())
    })?;
    Ok(Nonce::from_random(bytes))
}

#[cfg(test)]
mod tests {
    use super::nonce;

    #[test]
    fn no_nonce_comes_twice() {
        assert!(nonce().unwrap() != nonce().unwrap());
    }
}
