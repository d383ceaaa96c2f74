//! The commands, with their rules: whether they need a login, and in which databases they run.

mod admin;
mod bulk;
mod catalog;
mod cursors;
mod handshake;
mod indexes;
mod read;
mod sort;
mod update;
mod write;

use std::time::Duration;

use bson::RawDocumentBuf;

use super::auth;
use super::data::Namespace;
use super::hello::{self, Wait};
use super::refusal::{Refusal, code};
use super::request::Request;
use super::session::Session;
use super::world::World;

/// What a command is run with.
pub(super) struct Context<'a> {
    pub(super) now: Duration,
    pub(super) world: &'a mut World,
    pub(super) session: &'a mut Session,
    pub(super) request: &'a Request,
}

/// What comes of a command.
#[derive(Debug)]
pub(super) enum Answer {
    /// A reply, to which `ok: 1` is added.
    Reply(RawDocumentBuf),
    /// A reply when the topology changes or the time is up.
    Wait(Wait),
    /// A reply now, and one after each such wait.
    Stream(RawDocumentBuf, Wait),
}

/// A command that the server knows.
#[derive(Debug)]
pub(super) struct Definition {
    /// As it is counted; the others are as good.
    pub(super) name: &'static str,
    aliases: &'static [&'static str],
    /// Whether it runs without a login.
    open: bool,
    /// Whether it runs in the database `admin` alone.
    admin_only: bool,
    needs: Needs,
    run: fn(&mut Context<'_>) -> Result<Answer, Refusal>,
}

/// What a command needs of a member of a replica set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Needs {
    /// Nothing of its data.
    Nothing,
    /// To read.
    Data,
    /// To write.
    Primary,
}

impl Definition {
    /// A command that needs a login and runs in any database.
    const fn new(name: &'static str, run: fn(&mut Context<'_>) -> Result<Answer, Refusal>) -> Self {
        Self { name, aliases: &[], open: false, admin_only: false, needs: Needs::Nothing, run }
    }

    const fn also_called(self, aliases: &'static [&'static str]) -> Self {
        Self { aliases, ..self }
    }

    const fn before_authentication(self) -> Self {
        Self { open: true, ..self }
    }

    const fn in_admin(self) -> Self {
        Self { admin_only: true, ..self }
    }

    const fn needing(self, needs: Needs) -> Self {
        Self { needs, ..self }
    }

    pub(super) fn is_called(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }

    pub(super) fn is_handshake(&self) -> bool {
        matches!(self.name, "hello" | "isMaster")
    }
}

/// Every command.
static DEFINITIONS: &[Definition] = &[
    Definition::new("hello", hello::run).before_authentication(),
    Definition::new("isMaster", hello::run).also_called(&["ismaster"]).before_authentication(),
    Definition::new("ping", handshake::ping).before_authentication(),
    Definition::new("buildInfo", handshake::build_info)
        .also_called(&["buildinfo"])
        .before_authentication(),
    Definition::new("whatsmyuri", handshake::whats_my_uri).before_authentication(),
    Definition::new("saslStart", auth::sasl_start).before_authentication(),
    Definition::new("saslContinue", auth::sasl_continue).before_authentication(),
    Definition::new("authenticate", auth::authenticate).before_authentication(),
    Definition::new("logout", admin::logout).before_authentication(),
    Definition::new("connectionStatus", admin::connection_status).before_authentication(),
    Definition::new("insert", write::insert).needing(Needs::Primary),
    Definition::new("update", update::update).needing(Needs::Primary),
    Definition::new("delete", write::delete).needing(Needs::Primary),
    Definition::new("bulkWrite", bulk::bulk_write).in_admin().needing(Needs::Primary),
    Definition::new("findAndModify", update::find_and_modify)
        .also_called(&["findandmodify"])
        .needing(Needs::Primary),
    Definition::new("find", read::find).needing(Needs::Data),
    Definition::new("count", read::count_documents).needing(Needs::Data),
    Definition::new("distinct", read::distinct).needing(Needs::Data),
    Definition::new("aggregate", read::aggregate).needing(Needs::Data),
    Definition::new("getMore", cursors::get_more),
    Definition::new("killCursors", cursors::kill_cursors),
    Definition::new("create", catalog::create).needing(Needs::Primary),
    Definition::new("drop", catalog::drop_collection).needing(Needs::Primary),
    Definition::new("dropDatabase", catalog::drop_database).needing(Needs::Primary),
    Definition::new("createIndexes", indexes::create_indexes).needing(Needs::Primary),
    Definition::new("dropIndexes", indexes::drop_indexes).needing(Needs::Primary),
    Definition::new("listIndexes", indexes::list_indexes).needing(Needs::Data),
    Definition::new("listCollections", catalog::list_collections).needing(Needs::Data),
    Definition::new("listDatabases", catalog::list_databases).in_admin().needing(Needs::Data),
    Definition::new("startSession", admin::nothing_to_do),
    Definition::new("refreshSessions", admin::nothing_to_do),
    Definition::new("endSessions", admin::nothing_to_do),
    Definition::new("killSessions", admin::nothing_to_do),
    Definition::new("killAllSessions", admin::nothing_to_do),
    Definition::new("commitTransaction", admin::nothing_to_do).in_admin(),
    Definition::new("abortTransaction", admin::nothing_to_do).in_admin(),
    Definition::new("configureFailPoint", admin::configure_fail_point).in_admin(),
    Definition::new("getParameter", admin::get_parameter).in_admin(),
    Definition::new("getCmdLineOpts", admin::get_command_line).in_admin(),
    Definition::new("serverStatus", admin::server_status),
    Definition::new("replSetStepDown", admin::step_down).in_admin(),
    // This server holds no elections.
    Definition::new("replSetFreeze", admin::nothing_to_do).in_admin(),
];

/// The command of that name.
pub(super) fn find(name: &str) -> Option<&'static Definition> {
    DEFINITIONS.iter().find(|definition| definition.is_called(name))
}

/// What must hold before a command runs, and before a fail point concerns it.
///
/// # Errors
///
/// An unknown command, a missing or wrong database, a missing login, an unknown API version.
pub(super) fn admit(
    known: Option<&'static Definition>,
    context: &Context<'_>,
) -> Result<&'static Definition, Refusal> {
    let Context { world, session, request, .. } = context;
    if request.form.legacy && !known.is_some_and(Definition::is_handshake) {
        let message = format!(
            "Unsupported OP_QUERY command: {}. The client driver may require an upgrade.",
            request.name
        );
        return Err(Refusal::new(code::UNSUPPORTED_OP_QUERY, message));
    }
    let Some(database) = &request.database else {
        return Err(Refusal::new(code::MISSING_DATABASE, "OP_MSG requests require a $db argument"));
    };
    if database.is_empty() || database.contains(['.', '/', '\\', ' ', '"', '\0']) {
        let message = format!("Invalid database name: '{database}'");
        return Err(Refusal::new(code::INVALID_NAMESPACE, message));
    }
    let name = &request.name;
    let Some(known) = known else {
        let message = format!("no such command: '{name}'");
        return Err(Refusal::new(code::COMMAND_NOT_FOUND, message));
    };
    if request.text("apiVersion")?.is_some_and(|version| version != "1") {
        return Err(Refusal::new(code::API_VERSION, "API version must be \"1\""));
    }
    if known.admin_only && database != "admin" {
        let message = format!("{name} may only be run against the admin database.");
        return Err(Refusal::new(code::UNAUTHORIZED, message));
    }
    if world.topology.is_standalone() && request.whole("txnNumber")?.is_some() {
        let message = "Transaction numbers are only allowed on a replica set member or mongos";
        return Err(Refusal::new(code::ILLEGAL_OPERATION, message));
    }
    if world.options.auth && session.authenticated.is_empty() && !known.open {
        let message = format!("Command {name} requires authentication");
        return Err(Refusal::new(code::UNAUTHORIZED, message));
    }
    let expired = session.token.as_ref().is_some_and(|it| world.users.holder(&it.text).is_none());
    if expired && !known.open {
        let message = "the access token has expired: authenticate again";
        return Err(Refusal::new(code::REAUTHENTICATION_REQUIRED, message));
    }
    Ok(known)
}

/// Runs a command that was admitted.
///
/// # Errors
///
/// Those of the command, and `NotWritablePrimary` and the like where the server is not what it needs.
pub(super) fn run(definition: &Definition, context: &mut Context<'_>) -> Result<Answer, Refusal> {
    definition.needs.check(context)?;
    (definition.run)(context)
}

impl Needs {
    fn check(self, context: &Context<'_>) -> Result<(), Refusal> {
        use super::topology::Takes;

        match (self, context.world.topology.takes()) {
            (Self::Nothing, _) | (_, Takes::Everything) => Ok(()),
            (Self::Primary, Takes::ReadsOnRequest | Takes::Nothing) => {
                Err(Refusal::new(code::NOT_WRITABLE_PRIMARY, "not primary"))
            }
            (Self::Data, Takes::ReadsOnRequest) if reads_anywhere(context.request) => Ok(()),
            (Self::Data, Takes::Nothing) if reads_anywhere(context.request) => {
                let message = "not primary or secondary; cannot currently read from this member";
                Err(Refusal::new(code::NOT_PRIMARY_OR_SECONDARY, message))
            }
            (Self::Data, Takes::ReadsOnRequest | Takes::Nothing) => {
                let message = "not primary and secondaryOk=false";
                Err(Refusal::new(code::NOT_PRIMARY_NO_SECONDARY_OK, message))
            }
        }
    }
}

/// The collection that a command names first.
fn namespace(request: &Request) -> Result<Namespace, Refusal> {
    let database = request.database.clone().unwrap_or_default();
    let collection = request.first().and_then(bson::RawBsonRef::as_str).unwrap_or_default();
    if collection.is_empty() || collection.starts_with('.') || collection.contains('\0') {
        let message = format!("Invalid namespace specified '{database}.{collection}'");
        return Err(Refusal::new(code::INVALID_NAMESPACE, message));
    }
    Ok(Namespace { database, collection: collection.to_owned() })
}

/// Whether the client can do with a secondary.
fn reads_anywhere(request: &Request) -> bool {
    let preference = request.document("$readPreference").ok().flatten();
    preference.is_some_and(|it| it.get_str("mode").is_ok_and(|mode| mode != "primary"))
}
