//! `cenote man FOLDER`

use std::fs;
use std::path::PathBuf;

use super::Failure;
use super::input::at;

/// Arguments of `cenote man`.
#[derive(Debug, clap::Args)]
#[command(after_help = "To read one: cenote man pages && man pages/cenote-run.1")]
pub(super) struct Arguments {
    /// The folder for the pages, such as ~/.local/share/man/man1; created if necessary
    folder: PathBuf,
}

/// Writes a manual page for `command` and for each of its subcommands.
pub(super) fn run(arguments: &Arguments, command: clap::Command) -> Result<bool, Failure> {
    let folder = &arguments.folder;
    fs::create_dir_all(folder).map_err(at(folder))?;
    // It has no page for `help` as a command.
    let command = command.disable_help_subcommand(true);
    clap_mangen::generate_to(command, folder).map_err(at(folder))?;
    Ok(true)
}
