//! What follows from each input in each state, as a page that is made by trying it.
//!
//! Each cell of the two tables is a short [transcript](crate::transcript): a pool is brought into a
//! state, one input is fed, and what the machine does is written down.

use std::fmt::Write as _;

use cenote_core::pool::Input;

use crate::transcript::{Player, Story};

mod cells;
mod columns;
mod rows;

use columns::{CONNECTION_STATES, POOL_STATES};
macro_rules! kinds {
    ($($name:ident),* $(,)?) => {
        /// Every input of the machine; one that is added does not compile before it is named here
        /// and has its rows.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Kind {
            $(
                #[doc = concat!("`Input::", stringify!($name), "`")]
                $name,
            )*
        }

        impl Kind {
            /// Each of them, in the order of the page.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The kind of an input.
            pub const fn of(input: &Input<Story>) -> Self {
                match input {
                    $(Input::$name { .. } => Self::$name,)*
                }
            }

            /// As the machine spells it.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)*
                }
            }
        }
    };
}

kinds! {
    CheckOutRequested,
    CheckOutCancelled,
    CheckedIn,
    Repurposed,
    Handshaken,
    EstablishSucceeded,
    EstablishFailed,
    IdleClosedByPeer,
    Ready,
    Clear,
    Close,
    Timer,
    SetOptions,
    ResetAfterFork,
}

/// The whole page, `docs/state-machine.md`.
///
/// # Panics
///
/// When a row does not feed the input that it is about, or an invariant of the machine does not
/// hold.
pub fn page() -> String {
    let mut page = String::from(include_str!("introduction.md"));
    write_head(&mut page, &["input", "when"], POOL_STATES.iter().map(|state| state.name));
    for &kind in Kind::ALL {
        for row in rows::of(kind) {
            let cells = POOL_STATES.iter().map(|state| cell(kind, &state.script(&row), row.input));
            write_row(&mut page, &[kind.name(), row.when], cells);
        }
    }
    page.push_str(include_str!("connections.md"));
    write_head(&mut page, &["input"], CONNECTION_STATES.iter().map(|state| state.name));
    for &kind in Kind::ALL {
        for (what, input) in rows::about_connection(kind) {
            let cells = CONNECTION_STATES.iter().map(|state| cell(kind, &state.script(), input));
            write_row(&mut page, &[&format!("{}{what}", kind.name())], cells);
        }
    }
    page
}

/// Plays the script, then the input, and tells what the input caused.
fn cell(kind: Kind, script: &[&str], input: &str) -> String {
    let mut player = Player::default();
    let mut perform = |line: &str| {
        let command = line.parse().unwrap_or_else(|error| panic!("{line}: {error}"));
        let before = player.status();
        let replies = player.perform(command).unwrap_or_else(|error| panic!("{line}: {error}"));
        (before, replies, player.status(), player.last_input().map(Kind::of))
    };
    for line in script {
        perform(line);
    }
    let (before, replies, after, fed) = perform(input);
    assert_eq!(fed, Some(kind), "{input} is not a {}", kind.name());
    cells::tell(&replies, after.filter(|_| before != after))
}

fn write_head<'a>(page: &mut String, first: &[&'a str], states: impl Iterator<Item = &'a str>) {
    let names: Vec<&str> = first.iter().copied().chain(states).collect();
    let rules = vec!["---"; names.len()];
    writeln!(page, "| {} |\n|{}|", names.join(" | "), rules.join("|")).expect("a String grows");
}

fn write_row(page: &mut String, first: &[&str], cells: impl Iterator<Item = String>) {
    let cells: Vec<String> = cells.collect();
    writeln!(page, "| {} | {} |", first.join(" | "), cells.join(" | ")).expect("a String grows");
}
