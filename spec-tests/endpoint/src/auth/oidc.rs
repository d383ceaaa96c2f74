//! MONGODB-OIDC in one step: the message is a document with an access token.

use bson::RawDocument;

use super::{Login, fail, logged_in};
use crate::commands::Context;
use crate::refusal::{Refusal, code};
use crate::user::{AccessToken, EXTERNAL};

pub(super) fn log_in(
    context: &mut Context<'_>,
    login: &Login<'_>,
    message: &[u8],
) -> Result<(), Refusal> {
    let Some(token) = RawDocument::from_bytes(message).ok().and_then(|it| it.get_str("jwt").ok())
    else {
        let text = "MONGODB-OIDC needs a document with 'jwt': conversations of two steps are not supported";
        return Err(Refusal::new(code::BAD_VALUE, text));
    };
    let holder = context.world.users.holder(token).filter(|_| login.database == EXTERNAL);
    let Some(holder) = holder.map(str::to_owned) else { return Err(fail(context)) };
    context.session.token = Some(AccessToken::new(token, &holder));
    logged_in(context, holder, EXTERNAL.to_owned());
    Ok(())
}
