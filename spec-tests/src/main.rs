//! The command `cenote`.

fn main() -> std::process::ExitCode {
    cenote::command::main()
}
