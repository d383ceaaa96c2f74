//! Fuzzing of connection strings.

use cenote_core::uri::ConnectionString;

/// Any text is a connection string or an error, and both can be displayed. Parsing gives the same
/// result again, and a password is not displayed.
///
/// # Panics
///
/// If a check fails.
pub fn uri(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match ConnectionString::parse(text) {
        Ok(parsed) => {
            assert_eq!(
                ConnectionString::parse(text).as_ref(),
                Ok(&parsed),
                "the same result again"
            );
            parsed.warnings().iter().for_each(|warning| drop(warning.to_string()));
            let password = parsed.credential.and_then(|credential| credential.password);
            if let Some(password) = password.filter(|it| it.expose().len() >= LONG_ENOUGH) {
                assert!(!format!("{password:?}").contains(password.expose()), "not shown");
            }
        }
        Err(error) => drop(error.to_string()),
    }
}

/// A password of this length does not occur in any text by chance.
const LONG_ENOUGH: usize = 16;
