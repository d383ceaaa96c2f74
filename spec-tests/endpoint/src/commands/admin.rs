//! Commands about the server and its sessions.

use bson::raw::{RawArrayBuf, RawDocumentBuf, cstr};
use bson::rawdoc;

use super::handshake::VERSION;
use super::{Answer, Context};
use crate::refusal::{Refusal, code};
use crate::replies;
use crate::topology::Role;
use crate::user::Mechanism;

/// Sessions and transactions have no effect: writes apply immediately.
pub(super) fn nothing_to_do(_: &mut Context<'_>) -> Result<Answer, Refusal> {
    Ok(Answer::Reply(replies::done()))
}

pub(super) fn configure_fail_point(context: &mut Context<'_>) -> Result<Answer, Refusal> {
    if !context.world.options.test_commands {
        let message = "no such command: 'configureFailPoint'";
        return Err(Refusal::new(code::COMMAND_NOT_FOUND, message));
    }
    let count = context.world.fail_point.configure(&context.request.body)?;
    Ok(Answer::Reply(rawdoc! { "count": count }))
}

pub(super) fn connection_status(context: &mut Context<'_>) -> Result<Answer, Refusal> {
    let users = context.session.authenticated.iter();
    let users: RawArrayBuf =
        users.map(|(user, db)| rawdoc! { "user": user.as_str(), "db": db.as_str() }).collect();
    let info = rawdoc! { "authenticatedUsers": users, "authenticatedUserRoles": [] };
    Ok(Answer::Reply(rawdoc! { "authInfo": info }))
}

pub(super) fn logout(context: &mut Context<'_>) -> Result<Answer, Refusal> {
    let database = context.request.database.as_deref();
    context.session.authenticated.retain(|(_, db)| Some(db.as_str()) != database);
    Ok(Answer::Reply(replies::done()))
}

pub(super) fn get_parameter(context: &mut Context<'_>) -> Result<Answer, Refusal> {
    let mechanisms = context.world.users.enabled().iter();
    let mechanisms: RawArrayBuf =
        mechanisms.map(|mechanism: &Mechanism| mechanism.name()).collect();
    let version = rawdoc! { "version": "8.0" };
    let known = rawdoc! {
        "authenticationMechanisms": mechanisms,
        "enableTestCommands": context.world.options.test_commands,
        "featureCompatibilityVersion": version,
    };
    let request = context.request;
    let all = request.first().and_then(bson::RawBsonRef::as_str) == Some("*");
    let mut reply = RawDocumentBuf::new();
    for (name, value) in known.iter().flatten() {
        if all || request.get(name.as_str())?.is_some() {
            reply.append(name, value);
        }
    }
    if reply.is_empty() {
        return Err(Refusal::new(code::INVALID_OPTIONS, "no option found to get"));
    }
    Ok(Answer::Reply(reply))
}

/// PyMongo's tests ask whether the server was started with `--auth`; a refusal would mean that it was.
pub(super) fn get_command_line(_: &mut Context<'_>) -> Result<Answer, Refusal> {
    Ok(Answer::Reply(rawdoc! { "argv": ["cenote", "endpoint"], "parsed": {} }))
}

pub(super) fn server_status(context: &mut Context<'_>) -> Result<Answer, Refusal> {
    let Context { now, world, .. } = context;
    let number = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    let statistics = &world.statistics;
    let router = world.topology.is_router();
    let process = if router { "mongos" } else { "mongod" };
    let millis = i64::try_from(now.as_millis()).unwrap_or(i64::MAX);
    let mut reply = rawdoc! {
        "host": world.options.address.as_str(),
        "version": VERSION,
        "process": process,
        "uptime": now.as_secs_f64().trunc(),
        "uptimeMillis": millis,
        "localTime": world.local_time(*now),
        "connections": {
            "current": number(statistics.open),
            "available": 1_000_000_i64,
            "totalCreated": number(statistics.accepted),
        },
        "metrics": { "cursor": { "open": { "total": number(world.cursors.len() as u64) } } },
    };
    if !router {
        reply.append(cstr!("storageEngine"), rawdoc! { "name": "ephemeral" });
    }
    let compressed = |name| number(*statistics.compressed_commands.get(name).unwrap_or(&0));
    let compressed = rawdoc! {
        "snappy": compressed("snappy"), "zlib": compressed("zlib"), "zstd": compressed("zstd"),
    };
    // What no other server says, under a name that none has.
    reply.append(cstr!("cenote"), rawdoc! { "compressedCommands": compressed });
    Ok(Answer::Reply(reply))
}

pub(super) fn step_down(context: &mut Context<'_>) -> Result<Answer, Refusal> {
    let world = &mut *context.world;
    if !world.topology.is_primary() {
        return Err(Refusal::new(code::NOT_WRITABLE_PRIMARY, "not primary so can't step down"));
    }
    let wall_clock = world.wall_clock(context.now);
    world.topology.change_role(Role::Secondary, wall_clock, &mut world.entropy);
    Ok(Answer::Reply(replies::done()))
}
