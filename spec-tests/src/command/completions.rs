//! `cenote completions SHELL`

use clap_complete::Shell;

use super::Failure;
use super::output::print;

/// Arguments of `cenote completions`.
#[derive(Debug, clap::Args)]
#[command(after_help = "For bash: cenote completions bash > \
    ~/.local/share/bash-completion/completions/cenote\n\
    For zsh: cenote completions zsh > DIR/_cenote, where DIR is in $fpath\n\
    For fish: cenote completions fish > ~/.config/fish/completions/cenote.fish")]
pub(super) struct Arguments {
    /// The shell that completes
    shell: Shell,
}

/// Prints the script that teaches a shell to complete a command.
pub(super) fn run(arguments: &Arguments, command: &mut clap::Command) -> Result<bool, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, command, "cenote", &mut script);
    print(String::from_utf8_lossy(&script))?;
    Ok(true)
}
