//! Performs commands on a pool.

use std::collections::BTreeMap;
use std::time::Duration;

use cenote_core::pool::{
    Action, ConnId, Deadline, Health, Input, Instant, MisuseReason, PoolOptions, PoolState,
    Purpose, WaiterId,
};

use super::Story;
use super::command::{Command, Question};
use super::questions;

/// A part of an answer.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Reply {
    /// An action of the machine.
    Acted(Action<Story>),
    /// The machine refused the input.
    Refused(MisuseReason),
    /// The timer fired at this time.
    Woken(Deadline),
    /// An answer to a question, or about the script itself.
    Told(String),
}

/// A pool, the time, and the names in the script so far.
#[derive(Default)]
pub(super) struct Player {
    pub(super) pool: Option<PoolState<Story>>,
    now: Duration,
    ids: BTreeMap<u64, ConnId>,
    waiters: BTreeMap<String, WaiterId>,
}

impl Player {
    /// Performs one command and returns the answer.
    pub(super) fn perform(&mut self, command: Command) -> Result<Vec<Reply>, String> {
        match command {
            Command::Pool(options) => Ok(self.begin(options)),
            Command::Out { names, deadline, purpose, id } => {
                self.each(names, |player, name| player.out(name, deadline, purpose, id))
            }
            Command::In { ids, error, pending } => self.each(ids, |player, id| {
                let error = error.clone();
                let health = match pending {
                    None => error.map_or(Health::Healthy, Health::Errored),
                    Some(request_id) => {
                        let cause = error.unwrap_or_else(|| "timed out".to_owned());
                        Health::PendingResponse { request_id, cause }
                    }
                };
                player.feed(Input::CheckedIn { id: player.id(id), conn: socket(id), health })
            }),
            Command::Drained(id) => {
                let conn = socket(id);
                self.feed(Input::DrainSucceeded { id: self.id(id), conn })
            }
            Command::DrainFailed(id, cause) => {
                self.feed(Input::DrainFailed { id: self.id(id), cause })
            }
            Command::DrainRead(id) => self.feed(Input::DrainProgress { id: self.id(id) }),
            Command::Retire => self.feed(Input::RetireConnections),
            Command::Release => self.feed(Input::ReleaseIdle),
            Command::Established(ids) => self.each(ids, |player, id| {
                let (id, conn) = (player.id(id), socket(id));
                player.feed(Input::EstablishSucceeded { id, conn })
            }),
            Command::Cancel(name) => {
                let id =
                    self.waiters.get(&name).ok_or_else(|| format!("{name} has not checked out"))?;
                self.feed(Input::CheckOutCancelled { id: *id })
            }
            Command::Repurpose(id, purpose) => {
                self.feed(Input::Repurposed { id: self.id(id), purpose })
            }
            Command::Handshaken(id, service, clears_at_hello) => {
                self.feed(Input::Handshaken { id: self.id(id), service, clears_at_hello })
            }
            Command::Failed(id, cause, overloaded) => {
                self.feed(Input::EstablishFailed { id: self.id(id), cause, overloaded })
            }
            Command::PeerClosed(id, cause) => {
                self.feed(Input::IdleClosedByPeer { id: self.id(id), cause })
            }
            Command::Ready => self.feed(Input::Ready),
            Command::Clear { cause, interrupt, service } => {
                self.feed(Input::Clear { cause, interrupt, service })
            }
            Command::Close => self.feed(Input::Close),
            Command::Options(options) => {
                self.feed(Input::SetOptions { options: Box::new(options) })
            }
            Command::Fork => self.feed(Input::ResetAfterFork),
            Command::Timer => self.feed(Input::Timer),
            Command::Pass(time) => self.pass(self.now + time),
            Command::Back(time) => self.pass(self.now.saturating_sub(time)),
            Command::Advance(time) => self.advance(time),
            Command::Ask(question) => self.ask(question),
        }
    }

    fn begin(&mut self, options: PoolOptions) -> Vec<Reply> {
        *self = Self::default();
        let mut out = Vec::new();
        match PoolState::new(Instant::ORIGIN, options, &mut out) {
            Ok(pool) => {
                pool.check_invariants();
                self.pool = Some(pool);
                out.into_iter().map(Reply::Acted).collect()
            }
            Err(invalid) => vec![Reply::Told(format!("invalid: {invalid}"))],
        }
    }

    fn each<T>(
        &mut self,
        all: Vec<T>,
        feed: impl Fn(&mut Self, T) -> Result<Vec<Reply>, String>,
    ) -> Result<Vec<Reply>, String> {
        let mut replies = Vec::new();
        for one in all {
            replies.extend(feed(self, one)?);
        }
        Ok(replies)
    }

    fn out(
        &mut self,
        name: String,
        deadline: Option<Duration>,
        purpose: Purpose,
        id: Option<u64>,
    ) -> Result<Vec<Reply>, String> {
        let next = self.waiters.values().max().map_or(1, |last| last.0 + 1);
        let id = WaiterId(id.unwrap_or(next));
        let deadline = deadline.map(|deadline| self.instant() + deadline);
        if self.waiters.insert(name.clone(), id).is_some() {
            return Err(format!("{name} has checked out before: use another name"));
        }
        self.feed(Input::CheckOutRequested { id, waiter: name, deadline, purpose })
    }

    fn pass(&mut self, to: Duration) -> Result<Vec<Reply>, String> {
        self.pool()?;
        self.now = to;
        Ok(Vec::new())
    }

    /// Feeds `Timer` at each deadline, as a shell with an exact clock does.
    fn advance(&mut self, time: Duration) -> Result<Vec<Reply>, String> {
        let end = self.now + time;
        let mut replies = Vec::new();
        let mut woken = None;
        while let Some(deadline) = self.pool()?.next_deadline() {
            if deadline.at > Instant::ORIGIN + end {
                break;
            }
            self.now = self.now.max(Duration::from_nanos(deadline.at.as_nanos()));
            if woken.replace(deadline) == Some(deadline) {
                return Err(format!(
                    "the timer fired for {deadline:?}, and the machine still wants it"
                ));
            }
            replies.push(Reply::Woken(Deadline { at: self.instant(), ..deadline }));
            replies.extend(self.feed(Input::Timer)?);
        }
        self.now = end;
        Ok(replies)
    }

    fn feed(&mut self, input: Input<Story>) -> Result<Vec<Reply>, String> {
        self.pool()?;
        let now = self.instant();
        let Some(pool) = &mut self.pool else { unreachable!("checked above") };
        let mut out = Vec::new();
        let handled = pool.handle(now, input, &mut out);
        pool.check_invariants();
        for action in &out {
            if let Action::StartEstablish { id, .. } = action {
                self.ids.insert(id.number(), *id);
            }
        }
        let refused = handled.err().map(|misuse| Reply::Refused(misuse.reason));
        Ok(out.into_iter().map(Reply::Acted).chain(refused).collect())
    }

    fn ask(&self, question: Question) -> Result<Vec<Reply>, String> {
        let lines = questions::answer(question, self.pool()?, &self.waiters);
        Ok(lines.into_iter().map(Reply::Told).collect())
    }

    fn pool(&self) -> Result<&PoolState<Story>, String> {
        self.pool.as_ref().ok_or_else(|| "there is no pool yet: start with `pool`".to_owned())
    }

    /// The id of this connection number; a foreign id if it never existed.
    fn id(&self, number: u64) -> ConnId {
        self.ids.get(&number).copied().unwrap_or(ConnId::from_parts(number, 0))
    }

    fn instant(&self) -> Instant {
        Instant::ORIGIN + self.now
    }
}

fn socket(number: u64) -> String {
    format!("s{number}")
}
