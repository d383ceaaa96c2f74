//! Results in batches. Behind a load balancer a cursor keeps the connection on which it was opened
//! until it is drained or closed; in a transaction that is the transaction's.

use std::collections::VecDeque;
use std::sync::Arc;

use bson::{Document, doc};
use cenote_core::pool::Purpose;

use super::command::{Command, Safety};
use super::session::Session;
use super::{Client, Failure};
use cenote_test_runtimes::AnyPin;

/// What is left of a result.
pub(in crate::formats::unified) struct Cursor {
    client: Arc<Client>,
    session: Option<Arc<Session>>,
    pin: Option<Box<dyn AnyPin>>,
    /// 0 when the server has no more.
    id: i64,
    database: String,
    collection: String,
    batch_size: Option<i32>,
    batch: VecDeque<Document>,
    /// The connection was lost: the server cannot be told any more.
    is_lost: bool,
}

impl Cursor {
    /// Runs a command that opens a cursor.
    ///
    /// # Errors
    ///
    /// As the client's own, and a reply without a cursor.
    pub(in crate::formats::unified) fn open(
        client: &Arc<Client>,
        mut command: Command,
        session: Option<Arc<Session>>,
        batch_size: Option<i32>,
    ) -> Result<Self, Failure> {
        command.purpose = Purpose::Cursor;
        let (reply, connection) = match &session {
            Some(session) => (session.run(&command)?, None),
            None => {
                let (reply, connection) = client.run(&command)?;
                (reply, connection)
            }
        };
        let mut cursor = Self {
            client: Arc::clone(client),
            session,
            pin: connection,
            id: 0,
            database: command.database.clone(),
            collection: String::new(),
            batch_size,
            batch: VecDeque::new(),
            is_lost: false,
        };
        cursor.take_in(&reply)?;
        if cursor.id != 0 && client.is_limited(&command) {
            return Err(Failure::script("a second batch under timeoutMS"));
        }
        Ok(cursor)
    }

    /// The next document; asks for more until there is one or the end.
    ///
    /// # Errors
    ///
    /// Of a getMore.
    pub(in crate::formats::unified) fn next(&mut self) -> Result<Option<Document>, Failure> {
        while self.batch.is_empty() && self.id != 0 {
            let mut more = doc! { "getMore": self.id, "collection": &self.collection };
            if let Some(size) = self.batch_size {
                more.insert("batchSize", size);
            }
            let reply = self.send(more)?;
            self.take_in(&reply)?;
        }
        Ok(self.batch.pop_front())
    }

    /// Everything that is left.
    ///
    /// # Errors
    ///
    /// Of a getMore.
    pub(in crate::formats::unified) fn drain(mut self) -> Result<Vec<Document>, Failure> {
        let mut all = Vec::new();
        loop {
            match self.next() {
                Ok(Some(document)) => all.push(document),
                Ok(None) => return Ok(all),
                Err(failure) => {
                    self.close();
                    return Err(failure);
                }
            }
        }
    }

    /// Tells the server, if it has more, and gives the connection back whatever it says.
    pub(in crate::formats::unified) fn close(&mut self) {
        if self.id != 0 && !self.is_lost {
            let kill = doc! { "killCursors": &self.collection, "cursors": [self.id] };
            let _ = self.send(kill);
        }
        self.id = 0;
        self.pin = None;
    }

    fn send(&mut self, body: Document) -> Result<Document, Failure> {
        let mut command = Command::new(&self.database, body, Safety::Unknown);
        command.purpose = Purpose::Cursor;
        let outcome = match (&self.session, &mut self.pin) {
            (Some(session), _) => session.run(&command),
            (None, Some(pin)) => self.client.send(&mut **pin, &self.database, &command.body),
            (None, None) => self.client.run(&command).map(|(reply, _)| reply),
        };
        self.is_lost |= outcome.as_ref().is_err_and(Failure::is_network_error);
        outcome
    }

    fn take_in(&mut self, reply: &Document) -> Result<(), Failure> {
        let wrong = || Failure::script("a reply without a cursor");
        let cursor = reply.get_document("cursor").map_err(|_| wrong())?;
        self.id = cursor.get_i64("id").map_err(|_| wrong())?;
        let namespace = cursor.get_str("ns").map_err(|_| wrong())?;
        let (_, collection) = namespace.split_once('.').ok_or_else(wrong)?;
        self.collection = collection.to_owned();
        let batch = cursor.get_array("firstBatch").or_else(|_| cursor.get_array("nextBatch"));
        for document in batch.map_err(|_| wrong())? {
            let document = document.as_document().cloned();
            let no_document = || Failure::script("something else than documents in a batch");
            self.batch.push_back(document.ok_or_else(no_document)?);
        }
        if self.id == 0 {
            self.pin = None;
        }
        Ok(())
    }
}
