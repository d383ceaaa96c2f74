use super::{Flags, Header, WireError};

/// Whose turn it is on one connection: a request, its reply, and any more replies that it allowed.
///
/// Feed it every request before its first byte is written and every reply that was read. It refuses
/// what the protocol does, and knows whether the connection may go back to its pool: only
/// [`is_reusable`](Self::is_reusable), with an [empty framer](super::Framer::is_empty), is healthy.
/// An operation that is given up in the middle leaves it as it is, which is not reusable.
///
/// ```
/// use cenote_core::wire::{Exchange, Flags, WireError};
///
/// // An unacknowledged write: no reply will come.
/// let mut exchange = Exchange::default();
/// exchange.begin_request(1, Flags::MORE_TO_COME)?;
/// assert!(!exchange.is_reusable());
/// exchange.request_written();
/// assert!(exchange.is_reusable());
///
/// // Anything else waits for its reply.
/// exchange.begin_request(2, Flags::NONE)?;
/// exchange.request_written();
/// assert_eq!(exchange.begin_request(3, Flags::NONE), Err(WireError::NotYourTurn));
/// assert!(!exchange.is_reusable());
/// # Ok::<(), WireError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Exchange {
    turn: Turn,
    /// Whether replies that go on may all answer the request.
    is_lenient: bool,
}

/// Whether a reply was the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
#[non_exhaustive]
pub enum Progress {
    /// It was: the next request may be sent.
    Complete,
    /// Another one follows: read on, and send nothing.
    MoreToCome,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Turn {
    #[default]
    Ours,
    /// A request is on its way, perhaps in part.
    Writing { request_id: i32, flags: Flags },
    /// A reply to that message must come next, which is the request or the reply before.
    Theirs { expected: i32, request_id: i32, exhaust: bool },
    /// The caller sends and receives past this exchange.
    Lent,
    /// The other side broke the protocol.
    Broken,
}

impl Exchange {
    /// One that also accepts a stream whose replies all answer the request, and not each the one
    /// before. Servers that are not MongoDB's own send such streams to monitors, where nothing can
    /// be mistaken for it: there is one request on the connection. All others are strict:
    /// `docs/decisions/0008-what-monitors-accept.md`.
    // MS-09
    #[must_use]
    pub fn lenient() -> Self {
        Self { is_lenient: true, ..Self::default() }
    }

    /// A request is about to be written. From now on the connection has no other use.
    ///
    /// # Errors
    ///
    /// [`WireError::NotYourTurn`] while another exchange is under way, or after an error; nothing
    /// changes.
    // CO-04
    pub fn begin_request(&mut self, request_id: i32, flags: Flags) -> Result<(), WireError> {
        if self.turn != Turn::Ours {
            return Err(WireError::NotYourTurn);
        }
        self.turn = Turn::Writing { request_id, flags };
        Ok(())
    }

    /// The last byte of the request has been written.
    ///
    /// # Panics
    ///
    /// When no request was begun.
    // MS-08
    pub fn request_written(&mut self) {
        let Turn::Writing { request_id, flags } = self.turn else {
            panic!("no request is being written");
        };
        self.turn = if flags.more_to_come {
            Turn::Ours
        } else {
            Turn::Theirs { expected: request_id, request_id, exhaust: flags.exhaust_allowed }
        };
    }

    /// No byte of the request has been written, and none will be: its time was over before. All is
    /// as before it was begun.
    ///
    /// # Panics
    ///
    /// When no request was begun.
    pub fn request_withdrawn(&mut self) {
        assert!(matches!(self.turn, Turn::Writing { .. }), "no request is being written");
        self.turn = Turn::Ours;
    }

    /// A reply was read. It must answer the request, or, after one with `moreToCome`, the reply
    /// before it. For an OP_REPLY the flags are [`Flags::NONE`].
    ///
    /// # Errors
    ///
    /// [`WireError::Unsolicited`], [`WireError::ResponseTo`], [`WireError::ExhaustNotAllowed`].
    /// After each the connection has perished.
    pub fn reply(&mut self, header: Header, flags: Flags) -> Result<Progress, WireError> {
        let outcome = self.judge(header, flags);
        self.turn = match (&outcome, self.turn) {
            (Ok(Progress::MoreToCome), Turn::Theirs { request_id, .. }) => {
                Turn::Theirs { expected: header.ids.request_id, request_id, exhaust: true }
            }
            (Ok(_), _) => Turn::Ours,
            (Err(_), _) => Turn::Broken,
        };
        outcome
    }

    /// From now on bytes go past this exchange, which cannot know what they mean: until the caller
    /// that sends them has [given the connection back](Self::take_back), it has no other use.
    ///
    /// # Errors
    ///
    /// [`WireError::NotYourTurn`] while an exchange is under way, or after an error; nothing
    /// changes.
    pub fn lend(&mut self) -> Result<(), WireError> {
        if self.turn != Turn::Ours {
            return Err(WireError::NotYourTurn);
        }
        self.turn = Turn::Lent;
        Ok(())
    }

    /// The caller that was [lent](Self::lend) the connection says that nothing is under way and
    /// nothing unread.
    ///
    /// # Panics
    ///
    /// When it was not lent.
    pub fn take_back(&mut self) {
        assert!(self.turn == Turn::Lent, "the connection was not lent");
        self.turn = Turn::Ours;
    }

    /// Nothing is under way, nothing is unread, nothing was wrong.
    // CO-19
    #[must_use]
    pub fn is_reusable(&self) -> bool {
        self.turn == Turn::Ours
    }

    /// Whether a reply has to come: a request is written, and the last reply to it was not read.
    #[must_use]
    pub fn awaits_reply(&self) -> bool {
        matches!(self.turn, Turn::Theirs { .. })
    }

    /// The request whose only reply is still to come. `None` while it is written, and for one that
    /// allowed a stream of replies or whose reply has begun one.
    #[must_use]
    pub fn pending_response(&self) -> Option<i32> {
        match self.turn {
            Turn::Theirs { request_id, exhaust: false, .. } => Some(request_id),
            Turn::Theirs { exhaust: true, .. }
            | Turn::Ours
            | Turn::Writing { .. }
            | Turn::Lent
            | Turn::Broken => None,
        }
    }

    // MS-09, MS-15
    fn judge(&self, header: Header, flags: Flags) -> Result<Progress, WireError> {
        let got = header.ids.response_to;
        let Turn::Theirs { expected, request_id, exhaust } = self.turn else {
            return Err(WireError::Unsolicited { response_to: got });
        };
        if got != expected && !(self.is_lenient && got == request_id) {
            return Err(WireError::ResponseTo { expected, got });
        }
        match (flags.more_to_come, exhaust) {
            (false, _) => Ok(Progress::Complete),
            (true, true) => Ok(Progress::MoreToCome),
            // MS-10
            (true, false) => Err(WireError::ExhaustNotAllowed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Exchange, Progress};
    use crate::wire::{Flags, Header, Ids, OpCode, WireError};

    fn reply(request_id: i32, response_to: i32) -> Header {
        let ids = Ids { request_id, response_to };
        Header { message_length: 26, ids, op_code: OpCode::Msg }
    }

    fn asked(request_id: i32, flags: Flags) -> Exchange {
        let mut exchange = Exchange::default();
        exchange.begin_request(request_id, flags).unwrap();
        assert!(!exchange.is_reusable());
        exchange.request_written();
        exchange
    }

    // CO-19
    #[test]
    fn replies_follow_each_other_until_one_is_the_last() {
        let mut exchange = asked(1, Flags::EXHAUST_ALLOWED);
        assert_eq!(exchange.reply(reply(70, 1), Flags::MORE_TO_COME), Ok(Progress::MoreToCome));
        assert!(!exchange.is_reusable());
        // CO-04
        assert_eq!(exchange.begin_request(2, Flags::NONE), Err(WireError::NotYourTurn));
        assert_eq!(exchange.reply(reply(71, 70), Flags::MORE_TO_COME), Ok(Progress::MoreToCome));
        assert_eq!(exchange.reply(reply(72, 71), Flags::NONE), Ok(Progress::Complete));
        assert!(exchange.is_reusable());
    }

    #[test]
    fn an_unexpected_reply_breaks_the_connection() {
        let mut idle = Exchange::default();
        let mut other = asked(1, Flags::NONE);
        let mut exhaust = asked(1, Flags::EXHAUST_ALLOWED);
        let mut plain = asked(1, Flags::NONE);
        assert_eq!(exhaust.reply(reply(70, 1), Flags::MORE_TO_COME), Ok(Progress::MoreToCome));
        let outcomes = [
            idle.reply(reply(70, 1), Flags::NONE),
            other.reply(reply(70, 2), Flags::NONE),
            exhaust.reply(reply(71, 1), Flags::NONE),
            plain.reply(reply(70, 1), Flags::MORE_TO_COME),
        ];
        let expected = [
            WireError::Unsolicited { response_to: 1 },
            WireError::ResponseTo { expected: 1, got: 2 },
            WireError::ResponseTo { expected: 70, got: 1 },
            WireError::ExhaustNotAllowed,
        ];
        assert_eq!(outcomes.map(Result::unwrap_err), expected);
        for mut broken in [idle, other, exhaust, plain] {
            assert!(!broken.is_reusable());
            assert_eq!(broken.begin_request(2, Flags::NONE), Err(WireError::NotYourTurn));
        }
    }

    // MS-09, for monitors
    #[test]
    fn a_lenient_one_accepts_streams_that_answer_the_request() {
        let mut exchange = Exchange::lenient();
        for request_id in [1, 2] {
            exchange.begin_request(request_id, Flags::EXHAUST_ALLOWED).unwrap();
            exchange.request_written();
            let mut reply_with =
                |id, response_to, flags| exchange.reply(reply(id, response_to), flags);
            let more = Ok(Progress::MoreToCome);
            assert_eq!(reply_with(70, request_id, Flags::MORE_TO_COME), more);
            assert_eq!(reply_with(71, request_id, Flags::MORE_TO_COME), more);
            assert_eq!(reply_with(72, 71, Flags::MORE_TO_COME), more);
            assert_eq!(reply_with(73, request_id, Flags::NONE), Ok(Progress::Complete));
        }
        exchange.begin_request(3, Flags::EXHAUST_ALLOWED).unwrap();
        exchange.request_written();
        let refused = exchange.reply(reply(74, 2), Flags::NONE);
        assert_eq!(refused, Err(WireError::ResponseTo { expected: 3, got: 2 }));
    }

    #[test]
    fn a_lent_connection_has_no_other_use_until_it_is_given_back() {
        let mut exchange = Exchange::default();
        exchange.lend().unwrap();
        assert!(!exchange.is_reusable());
        assert_eq!(exchange.lend(), Err(WireError::NotYourTurn));
        assert_eq!(exchange.begin_request(1, Flags::NONE), Err(WireError::NotYourTurn));
        exchange.take_back();
        assert!(exchange.is_reusable());
        let mut busy = asked(1, Flags::NONE);
        assert_eq!(busy.lend(), Err(WireError::NotYourTurn));
    }

    #[test]
    fn half_a_request_is_not_reusable_even_without_a_reply() {
        let mut exchange = Exchange::default();
        exchange.begin_request(1, Flags::MORE_TO_COME).unwrap();
        assert!(!exchange.is_reusable());
        exchange.request_written();
        assert!(exchange.is_reusable());
    }
}
