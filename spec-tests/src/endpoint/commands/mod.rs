//! The commands: what there is, who may run it, and where.

mod handshake;

use std::time::Duration;

use bson::RawDocumentBuf;

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
    /// Whether it runs before somebody has logged in.
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
    /// A command that anybody who has logged in may run in any database.
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
];

/// The command of that name.
pub(super) fn find(name: &str) -> Option<&'static Definition> {
    DEFINITIONS.iter().find(|definition| definition.is_called(name))
}

/// What must hold before a command runs, and before a fail point concerns it.
///
/// # Errors
///
/// An unknown command, no or a wrong database, nobody logged in, an unknown API version.
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
    if world.options.auth && session.authenticated.is_empty() && !known.open {
        let message = format!("Command {name} requires authentication");
        return Err(Refusal::new(code::UNAUTHORIZED, message));
    }
    Ok(known)
}

/// Runs a command that was admitted.
///
/// # Errors
///
/// Those of the command, and what a member that is no primary says to those who want one.
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
            (Self::Data, Takes::ReadsOnRequest | Takes::Nothing) => {
                let message = "not primary and secondaryOk=false";
                Err(Refusal::new(code::NOT_PRIMARY_NO_SECONDARY_OK, message))
            }
        }
    }
}

/// Whether the client can do with a secondary.
fn reads_anywhere(request: &Request) -> bool {
    let preference = request.document("$readPreference").ok().flatten();
    preference.is_some_and(|it| it.get_str("mode").is_ok_and(|mode| mode != "primary"))
}
