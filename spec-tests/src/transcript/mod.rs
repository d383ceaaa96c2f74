//! Transcripts: stories about a pool, told as commands and what the machine answers.
//!
//! A file is text. Lines that begin with `#` are comments; a block is one or more commands, a line
//! `----`, and the answer up to the next empty line:
//!
//! ```text
//! # Somebody asks, and nothing is there yet.
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
//! An answer is one action a line, in the machine's order: events by CMAP's names without their
//! `Connection` in front, and behind an arrow what the shell is told to do. A refused input
//! answers with `misuse: …`. The invariants of the machine are checked after every input.
//!
//! The commands are listed in [`Command`]. PayloadSource are names: a waiter is called as the story
//! calls it, the socket of connection 3 is `s3`.

use std::fmt;

use cenote_core::pool::PoolTypes;

mod command;
mod options;
mod parse;
mod play;
mod questions;
mod show;
mod words;

pub use command::{Command, Question};
pub use play::{Player, Reply};

use parse::{Block, Part};

/// The shell of a story: every payload is a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Story {}

impl PoolTypes for Story {
    type Conn = String;
    type Waiter = String;
    type Cause = String;
}

/// What is wrong with a transcript, and where: shown as `file:line: message`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Trouble {
    /// As it was given.
    pub file: String,
    /// From 1.
    pub line: usize,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.message)
    }
}

/// Plays the commands of a transcript and returns it as it should be: the same text with the
/// answers that the machine gives.
///
/// # Errors
///
/// When a command cannot be understood or makes no sense in the story; what the machine refuses is
/// part of the story.
///
/// # Panics
///
/// When an invariant of the machine does not hold.
pub fn play(file: &str, text: &str) -> Result<String, Trouble> {
    let trouble = |line, message| Trouble { file: file.to_owned(), line, message };
    let parts = parse::parts(text).map_err(|(line, message)| trouble(line, message))?;
    let mut player = Player::default();
    let mut told = Vec::new();
    for part in parts {
        match part {
            Part::Prose(line) => told.push(line.to_owned()),
            Part::Block(block) => {
                let answer = answer(&mut player, &block)
                    .map_err(|(line, message)| trouble(line, message))?;
                told.extend(block.commands.iter().map(|&(_, command)| command.to_owned()));
                told.push(parse::RULE.to_owned());
                told.extend(answer);
            }
        }
    }
    Ok(told.join("\n") + "\n")
}

fn answer(player: &mut Player, block: &Block<'_>) -> Result<Vec<String>, (usize, String)> {
    let mut lines = Vec::new();
    for &(line, text) in &block.commands {
        let command = text.parse().map_err(|message| (line, message))?;
        let replies = player.perform(command).map_err(|message| (line, message))?;
        lines.extend(replies.iter().map(show::reply));
    }
    if lines.is_empty() {
        lines.push("(nothing)".to_owned());
    }
    Ok(lines)
}
