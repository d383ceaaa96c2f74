//! PLAIN: the password as it is.

use super::{Login, fail, logged_in};
use crate::commands::Context;
use crate::refusal::Refusal;

/// The message is the authorization identity (empty, or the user), a zero byte, the user, a zero byte,
/// and the password.
pub(super) fn log_in(
    context: &mut Context<'_>,
    login: &Login<'_>,
    message: &[u8],
) -> Result<(), Refusal> {
    let user = read(message).filter(|(user, password)| {
        context.world.users.has_password(login.database, user, password)
    });
    let Some(user) = user.map(|(user, _)| user.to_owned()) else { return Err(fail(context)) };
    logged_in(context, user, login.database.to_owned());
    Ok(())
}

fn read(message: &[u8]) -> Option<(&str, &str)> {
    let mut parts = std::str::from_utf8(message).ok()?.split('\0');
    let (identity, user, password) = (parts.next()?, parts.next()?, parts.next()?);
    let is_own = identity.is_empty() || identity == user;
    (is_own && parts.next().is_none()).then_some((user, password))
}
