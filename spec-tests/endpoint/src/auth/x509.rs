//! MONGODB-X509: the user is the subject of the client's certificate.

use bson::{RawBsonRef, RawDocumentBuf, rawdoc};

use super::{Login, fail, logged_in, mechanism};
use crate::commands::Context;
use crate::refusal::{Refusal, code};
use crate::request;
use crate::user::{EXTERNAL, Mechanism};

pub(super) fn log_in(
    context: &mut Context<'_>,
    login: &Login<'_>,
) -> Result<RawDocumentBuf, Refusal> {
    if mechanism(context, login)? != Mechanism::MongodbX509 {
        let message = "authenticate is for MONGODB-X509 alone; others start with saslStart";
        return Err(Refusal::new(code::BAD_VALUE, message));
    }
    let claimed = request::get(login.command, "user")?.and_then(RawBsonRef::as_str);
    let subject = context.session.peer.certificate_subject.clone();
    let subject = subject.filter(|subject| {
        login.database == EXTERNAL
            && claimed.is_none_or(|claimed| claimed == subject)
            && context.world.users.has_certificate(subject)
    });
    let Some(subject) = subject else { return Err(fail(context)) };
    logged_in(context, subject.clone(), EXTERNAL.to_owned());
    Ok(rawdoc! { "dbname": EXTERNAL, "user": subject })
}
