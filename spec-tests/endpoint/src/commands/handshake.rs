//! Commands that describe the server, and need no login.

use bson::rawdoc;

use super::{Answer, Context};
use crate::refusal::Refusal;
use crate::replies;

/// The version of MongoDB whose behaviour this is.
pub(super) const VERSION: &str = "8.0.4";

pub(super) fn ping(_: &mut Context<'_>) -> Result<Answer, Refusal> {
    Ok(Answer::Reply(replies::done()))
}

pub(super) fn build_info(context: &mut Context<'_>) -> Result<Answer, Refusal> {
    let size = context.world.options.limits.document_size;
    Ok(Answer::Reply(rawdoc! {
        "version": VERSION,
        "gitVersion": "none: this is cenote's endpoint",
        "modules": [],
        "allocator": "system",
        "javascriptEngine": "none",
        "sysInfo": "deprecated",
        "versionArray": [8, 0, 4, 0],
        "bits": 64,
        "debug": false,
        "maxBsonObjectSize": i32::try_from(size).unwrap_or(i32::MAX),
        "storageEngines": ["ephemeral"],
    }))
}

pub(super) fn whats_my_uri(context: &mut Context<'_>) -> Result<Answer, Refusal> {
    Ok(Answer::Reply(rawdoc! { "you": context.session.peer.address.as_str() }))
}
