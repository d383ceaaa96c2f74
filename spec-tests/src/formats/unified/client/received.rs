//! What a server receives of a client: the commands as they were really sent, with the `maxTimeMS` of the shell.

use std::sync::{Arc, Mutex};

use bson::{Bson, Document, RawDocument};
use serde_json::json;

use super::command::plain;
use super::story::Story;
use crate::formats::lock::lock;
use crate::formats::unified::format::Family;

/// The sessions whose commands are told when a server receives them.
#[derive(Clone, Default)]
pub(in crate::formats::unified) struct Received(Arc<Mutex<Vec<Watched>>>);

struct Watched {
    session: Document,
    story: Arc<Story>,
    commands: usize,
}

impl Received {
    /// A server has received this command.
    pub(in crate::formats::unified) fn tell(&self, command: &RawDocument) {
        let Ok(command) = Document::try_from(command) else { return };
        let Ok(session) = command.get_document("lsid") else { return };
        let mut all = lock(&self.0);
        let Some(watched) = all.iter_mut().find(|it| it.session == *session) else { return };
        watched.commands += 1;
        if watched.commands > 1 {
            // A shell sends a command again only after a refusal with code 391.
            let failed = json!({
                "commandName": command.keys().next(),
                "databaseName": command.get("$db").and_then(Bson::as_str),
                "failure": "reauthentication is required",
            });
            watched.story.tell(Family::Command, "commandFailedEvent", failed);
        }
        let fields = json!({
            "commandName": command.keys().next(),
            "databaseName": command.get("$db").and_then(Bson::as_str),
            "command": plain(command),
        });
        watched.story.tell(Family::Command, "commandStartedEvent", fields);
    }

    /// Calls `send`, and tells of the commands of this session that a server receives meanwhile. Returns how many
    /// these were, too.
    pub(super) fn during<T>(
        &self,
        session: &Document,
        story: &Arc<Story>,
        send: impl FnOnce() -> T,
    ) -> (T, usize) {
        let (session, story) = (session.clone(), Arc::clone(story));
        lock(&self.0).push(Watched { session: session.clone(), story, commands: 0 });
        let sent = send();
        let mut all = lock(&self.0);
        let index = all.iter().position(|it| it.session == session);
        let commands = index.map_or(0, |index| all.swap_remove(index).commands);
        (sent, commands)
    }
}
