//! What the shell reads of the process and of the operating system.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use cenote_core::connect::{Environment, Nonce};
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::pool::PoolOptions;
use cenote_core::wire::RequestIds;

/// The platform metadata of the handshake. Reads environment variables, and looks for a file.
#[must_use]
pub fn environment() -> Environment {
    let variable = |name: &str| Some(std::env::var_os(name)?.to_string_lossy().into_owned());
    Environment {
        has_dockerenv: Path::new("/.dockerenv").exists(),
        ..Environment::of(std::env::consts::OS, std::env::consts::ARCH, variable)
    }
}

/// A nonce for one authentication, from the operating system.
///
/// # Errors
///
/// When the operating system has no entropy.
// AU-35
pub fn nonce() -> Result<Nonce, ConnectionError> {
    let mut bytes = [0; Nonce::RANDOM_BYTES];
    getrandom::fill(&mut bytes).map_err(|error| {
        ConnectionError::configuration(Stage::Authentication, &error.to_string())
    })?;
    Ok(Nonce::from_random(bytes))
}

/// The time since 1970.
#[must_use]
pub fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Random numbers for the requests of a new connection.
///
/// # Errors
///
/// When the operating system has no entropy.
pub fn request_ids() -> Result<RequestIds, ConnectionError> {
    let mut entropy = [0; 16];
    getrandom::fill(&mut entropy)
        .map(|()| RequestIds::random(u128::from_ne_bytes(entropy)))
        .map_err(|error| ConnectionError::configuration(Stage::Tcp, &error.to_string()))
}

/// Random numbers, for choices that need not be secret. Without entropy they are all 0.
#[must_use]
pub fn random() -> u64 {
    getrandom::u64().unwrap_or_default()
}

/// Sets a random jitter seed if an option depends on it and no seed was chosen: pools with the same seed open and
/// close their connections at the same times (`docs/studies/lifetime.md`). Without entropy the default remains.
#[must_use]
pub fn with_jitter_seed_from_os(options: PoolOptions) -> PoolOptions {
    let with_jitter = [options.max_lifetime, options.overload_backoff];
    if with_jitter.iter().flatten().all(Duration::is_zero) || options.jitter_seed.is_some() {
        return options;
    }
    match getrandom::u64() {
        Ok(seed) => options.with_jitter_seed(seed),
        Err(_) => options,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use cenote_core::pool::PoolOptions;

    use super::{nonce, with_jitter_seed_from_os};

    #[test]
    fn pools_with_jitter_have_a_seed_of_their_own() {
        let limited = || PoolOptions::default().with_max_lifetime(Duration::from_secs(60));
        assert_ne!(
            with_jitter_seed_from_os(limited()).jitter_seed,
            with_jitter_seed_from_os(limited()).jitter_seed
        );
        assert_eq!(with_jitter_seed_from_os(limited().with_jitter_seed(7)).jitter_seed, Some(7));
        let unlimited = PoolOptions::default().with_max_lifetime(Duration::ZERO);
        assert_eq!(with_jitter_seed_from_os(unlimited.clone()).jitter_seed, None);
        let backs_off = unlimited.with_overload_backoff(Duration::from_millis(100));
        assert_ne!(with_jitter_seed_from_os(backs_off).jitter_seed, None);
        assert_eq!(with_jitter_seed_from_os(PoolOptions::default()).jitter_seed, None);
    }

    // AU-35
    #[test]
    fn no_nonce_comes_twice() {
        assert!(nonce().unwrap() != nonce().unwrap());
    }
}
