//! `cenote man FOLDER`

use std::path::PathBuf;
use std::{fs, io};

use thiserror::Error;

/// Arguments of `cenote man`.
#[derive(Debug, clap::Args)]
#[command(after_help = "To read one: cenote man pages && man pages/cenote-run.1")]
pub struct Arguments {
    /// The folder for the pages, such as ~/.local/share/man/man1; created if necessary
    folder: PathBuf,
}

/// Why there are no manual pages.
#[derive(Debug, Error)]
#[error("{folder}: {source}")]
pub struct Unwritable {
    folder: PathBuf,
    source: io::Error,
}

/// Writes a manual page for `command` and for each of its subcommands.
///
/// # Errors
///
/// The folder cannot be created, or a page cannot be written.
pub fn run(arguments: &Arguments, command: clap::Command) -> Result<bool, Unwritable> {
    let folder = &arguments.folder;
    let written = fs::create_dir_all(folder);
    // It has no page for `help` as a command.
    let command = command.disable_help_subcommand(true);
    let written = written.and_then(|()| clap_mangen::generate_to(command, folder));
    written.map_err(|source| Unwritable { folder: folder.clone(), source })?;
    Ok(true)
}
