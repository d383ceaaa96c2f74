//! The server of one connection, without I/O: what it hears is held to its script, what it says comes
//! from there.

use std::time::Duration;

use super::encode::{self, Said};
use super::expectation::Heard;
use super::scram::Scram;
use super::script::{Handshake, Script, Step};

/// One side of a connection.
#[derive(Debug)]
pub(super) struct Peer {
    script: Script,
    /// The step that is next.
    next: usize,
    /// What came and was not looked at.
    inbox: Vec<u8>,
    heard: Option<Heard>,
    /// The last message that was said.
    said: Option<Said>,
    scram: Scram,
}

/// What the server does next.
#[derive(Debug)]
pub(super) enum Turn {
    Say(Vec<u8>),
    ShakeHands(Handshake),
    Wait(Duration),
    Close,
    Reset,
    /// It waits for the client, to speak or to leave.
    Listen,
}

/// The length of a message's header, and of its first field.
const HEADER: usize = 16;
const LENGTH: usize = 4;

impl Peer {
    pub(super) fn new(script: &Script, password: &str) -> Self {
        Self {
            script: script.clone(),
            next: 0,
            inbox: Vec::new(),
            heard: None,
            said: None,
            scram: Scram::new(password),
        }
    }

    /// What comes from the client.
    pub(super) fn hear(&mut self, bytes: &[u8]) {
        self.inbox.extend_from_slice(bytes);
    }

    /// # Errors
    ///
    /// What the client has said is not what it should say.
    pub(super) fn turn(&mut self) -> Result<Turn, String> {
        self.do_next().map_err(|what| format!("{}: {what}", self.place()))
    }

    /// The client has closed the connection.
    ///
    /// # Errors
    ///
    /// It was not to do so yet.
    pub(super) fn is_left(&mut self) -> Result<(), String> {
        if !self.expects_nothing() {
            return Err(format!("{}: the client has closed the connection", self.place()));
        }
        self.next = self.script.steps.len();
        Ok(())
    }

    /// Whether the server has nothing more to do but to wait for the end.
    pub(super) fn has_heard_all(&self) -> bool {
        self.expects_nothing() && self.inbox.is_empty()
    }

    /// Whether the client may leave now.
    fn expects_nothing(&self) -> bool {
        let next = self.script.steps.get(self.next);
        matches!(next, None | Some(Step::IsLeft | Step::AnswersAlways(_)))
    }

    fn place(&self) -> String {
        format!("the server's step {}", self.next)
    }

    fn do_next(&mut self) -> Result<Turn, String> {
        loop {
            let Some(step) = self.script.steps.get(self.next).cloned() else {
                return self.nothing_more();
            };
            let turn = match step {
                Step::HearsBytes(expected) => {
                    let count = self.inbox.len().min(expected.0.len());
                    if self.inbox[..count] != expected.0[..count] {
                        let (expected, heard) = (hex(&expected.0), hex(&self.inbox));
                        return Err(format!("expected to hear {expected}, heard {heard}"));
                    }
                    if count < expected.0.len() {
                        return Ok(Turn::Listen);
                    }
                    self.inbox.drain(..count);
                    None
                }
                Step::HearsSomething if self.inbox.is_empty() => return Ok(Turn::Listen),
                Step::HearsSomething => {
                    self.inbox.clear();
                    None
                }
                Step::Hears(expected) => {
                    let Some(message) = self.whole_message()? else { return Ok(Turn::Listen) };
                    let heard = Heard::read(&message)?;
                    heard.compare(&expected)?;
                    self.heard = Some(heard);
                    self.said = None;
                    None
                }
                Step::IsLeft => return self.nothing_more(),
                Step::AnswersAlways(answer) => {
                    let Some(message) = self.whole_message()? else { return Ok(Turn::Listen) };
                    let heard = Heard::read(&message)?;
                    heard.compare(&answer.hears)?;
                    self.nothing_waits()?;
                    let (_, said) = encode::say(&answer.says, &heard, None, &mut self.scram)?;
                    return Ok(Turn::Say(said));
                }
                Step::SaysBytes(bytes) => {
                    self.nothing_waits()?;
                    Some(Turn::Say(bytes.0))
                }
                Step::SaysRequestId => {
                    self.nothing_waits()?;
                    let heard = self.heard.as_ref().ok_or("there is nothing to answer")?;
                    Some(Turn::Say(heard.request_id.to_le_bytes().to_vec()))
                }
                Step::Says(says) => {
                    self.nothing_waits()?;
                    let heard = self.heard.as_ref().ok_or("there is nothing to answer")?;
                    let said = encode::say(&says, heard, self.said, &mut self.scram)?;
                    self.said = Some(said.0);
                    Some(Turn::Say(said.1))
                }
                Step::Tls(handshake) => Some(Turn::ShakeHands(handshake)),
                Step::WaitsMs(time) => Some(Turn::Wait(Duration::from_millis(time))),
                Step::Closes => Some(Turn::Close),
                Step::Resets => Some(Turn::Reset),
            };
            self.next += 1;
            if let Some(turn) = turn {
                return Ok(turn);
            }
        }
    }

    /// While the server speaks, the client has nothing to say.
    fn nothing_waits(&self) -> Result<(), String> {
        if self.inbox.is_empty() {
            return Ok(());
        }
        Err(format!("the client does not wait for the answer, but says {}", hex(&self.inbox)))
    }

    fn nothing_more(&self) -> Result<Turn, String> {
        if self.inbox.is_empty() {
            return Ok(Turn::Listen);
        }
        Err(format!("the client says more than it should: {}", hex(&self.inbox)))
    }

    fn whole_message(&mut self) -> Result<Option<Vec<u8>>, String> {
        let Some(length) = self.inbox.first_chunk::<LENGTH>() else { return Ok(None) };
        let length = usize::try_from(i32::from_le_bytes(*length)).unwrap_or_default();
        if length < HEADER {
            return Err(format!("no message: {}", hex(&self.inbox)));
        }
        if self.inbox.len() < length {
            return Ok(None);
        }
        Ok(Some(self.inbox.drain(..length).collect()))
    }
}

/// The beginning of bytes, to be read by people.
fn hex(bytes: &[u8]) -> String {
    const SHOWN: usize = 64;
    let shown = bytes.iter().take(SHOWN).map(|byte| format!("{byte:02x}"));
    let end = if bytes.len() > SHOWN { " …" } else { "" };
    format!("[{}{end}]", shown.collect::<Vec<_>>().join(" "))
}
