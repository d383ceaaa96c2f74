//! Operations that take their time: the one script that this server knows is
//! `$where: "sleep(MILLISECONDS) || true"`, which lets every document pass.

use std::time::Duration;

use bson::{RawBsonRef, RawDocument};

use super::request::{self, Request};

/// How long a command takes whose filter says so.
pub(super) fn time_of(request: &Request) -> Option<Duration> {
    let filter = request.document("filter").ok().flatten().and_then(time_in);
    filter.or_else(|| {
        let beside = request.sequences.iter().filter(|(name, _)| name == "updates");
        let beside = beside.flat_map(|(_, updates)| updates).map(|update| &**update);
        let inside = match request.get("updates").ok().flatten() {
            Some(RawBsonRef::Array(updates)) => Some(updates),
            Some(_) | None => None,
        };
        let inside = inside.into_iter().flatten().filter_map(|update| update.ok()?.as_document());
        beside
            .chain(inside)
            .find_map(|update| time_in(request::get(update, "q").ok()??.as_document()?))
    })
}

/// Whether a `$where` is that script.
pub(super) fn is_known(script: RawBsonRef<'_>) -> bool {
    time(script).is_some()
}

fn time_in(filter: &RawDocument) -> Option<Duration> {
    time(request::get(filter, "$where").ok()??)
}

fn time(script: RawBsonRef<'_>) -> Option<Duration> {
    let millis = script.as_str()?.strip_prefix("sleep(")?.strip_suffix(") || true")?;
    millis.parse().ok().map(Duration::from_millis)
}
