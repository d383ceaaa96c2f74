//! Transcripts: scripts of commands for a pool, with the machine's answers.
//!
//! A file is text. Lines that begin with `#` are comments; a block is one or more commands, a line
//! `----`, and the answer up to the next empty line:
//!
//! ```text
//! # The first check-out of an empty pool.
//! pool max=1
//! ready
//! out a
//! ----
//! PoolCreated max=1
//! PoolReady
//! CheckOutStarted
//! Created 1
//! -> establish 1
//! ```
//!
//! An answer is one action per line, in the machine's order: events by CMAP's names without the
//! prefix `Connection`, and other actions after an arrow. A refused input answers with `misuse: …`.
//! The invariants of the machine are checked after every input.
//!
//! The commands are listed in `command.rs`. Payloads are names: a waiter has the caller's name, and
//! the socket of connection 3 is `s3`.

use std::fmt;

use cenote_core::pool::{PoolState, PoolTypes};

mod command;
mod options;
mod parse;
mod play;
mod questions;
mod show;
mod words;

use parse::{Block, Part};
use play::Player;

/// Payload types whose values are names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Story {}

impl PoolTypes for Story {
    type Conn = String;
    type Waiter = String;
    type Cause = String;
}

/// An error in a transcript, displayed as `file:line: message`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Trouble {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The message.
    pub message: String,
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.message)
    }
}

/// Plays the commands of a transcript. Returns the same text with the machine's answers.
///
/// # Errors
///
/// If a command is invalid, or cannot be performed in this state of the script. A refusal by the
/// machine is not an error but an answer.
///
/// # Panics
///
/// If an invariant of the machine is violated.
pub fn play(file: &str, text: &str) -> Result<String, Trouble> {
    play_with(file, text, |_| ())
}

/// As [`play()`], and calls `after` each command with the [fingerprint](PoolState::fingerprint) of the pool, if there is one.
///
/// # Errors
///
/// As [`play()`].
///
/// # Panics
///
/// As [`play()`].
pub fn play_with(
    file: &str,
    text: &str,
    mut after: impl FnMut(Option<u64>),
) -> Result<String, Trouble> {
    let trouble = |line, message| Trouble { file: file.to_owned(), line, message };
    let parts = parse::parts(text).map_err(|(line, message)| trouble(line, message))?;
    let mut player = Player::default();
    let mut told = Vec::new();
    for part in parts {
        match part {
            Part::Prose(line) => told.push(line.to_owned()),
            Part::Block(block) => {
                let answer = answer(&mut player, &block, &mut after)
                    .map_err(|(line, message)| trouble(line, message))?;
                told.extend(block.commands.iter().map(|&(_, command)| command.to_owned()));
                told.push(parse::RULE.to_owned());
                told.extend(answer);
            }
        }
    }
    Ok(told.join("\n") + "\n")
}

fn answer(
    player: &mut Player,
    block: &Block<'_>,
    after: &mut impl FnMut(Option<u64>),
) -> Result<Vec<String>, (usize, String)> {
    let mut lines = Vec::new();
    for &(line, text) in &block.commands {
        let command = text.parse().map_err(|message| (line, message))?;
        let replies = player.perform(command).map_err(|message| (line, message))?;
        lines.extend(replies.iter().map(show::reply));
        after(player.pool.as_ref().map(PoolState::fingerprint));
    }
    if lines.is_empty() {
        lines.push("(nothing)".to_owned());
    }
    Ok(lines)
}
