//! A child process that never outlives its test, and whose log is shown when the test fails.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// For what takes less than a second, on the slowest machine.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Process {
    child: Child,
    lines: Receiver<String>,
    seen: Vec<String>,
    reader: Option<JoinHandle<()>>,
}

impl Process {
    /// Starts it and reads what it says on standard error.
    pub(crate) fn start(command: &mut Command) -> Self {
        let spawned =
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
        let mut child = spawned.unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
        let log = BufReader::new(child.stderr.take().expect("it is piped"));
        let (sender, lines) = channel();
        let reader = thread::spawn(move || {
            for line in log.lines().map_while(Result::ok) {
                // Reads on without a receiver: a full pipe would stop the process.
                drop(sender.send(line));
            }
        });
        Self { child, lines, seen: Vec::new(), reader: Some(reader) }
    }

    /// Reads the log until a line has what is looked for. Panics with the log if it ends first.
    pub(crate) fn wait_for<T>(&mut self, find: impl Fn(&str) -> Option<T>) -> T {
        while let Ok(line) = self.lines.recv_timeout(PATIENCE) {
            let found = find(&line);
            self.seen.push(line);
            if let Some(found) = found {
                return found;
            }
        }
        panic!("the process ended or fell silent before it was ready")
    }

    /// For a process that says nothing when it is ready.
    pub(crate) fn assert_runs(&mut self) {
        let ended = self.child.try_wait().expect("a child that can be asked");
        assert_eq!(ended, None, "the process ended before it was ready");
    }

    /// Asks it to stop, as a service manager would, and waits until it has.
    pub(crate) fn stop(mut self) -> ExitStatus {
        // Every shell has it; a program of that name may be missing.
        let kill = format!("kill -s TERM {}", self.child.id());
        let killed = Command::new("sh").args(["-c", &kill]).status();
        assert!(killed.expect("a shell").success());
        self.child.wait().expect("a child that was not waited for")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.child.kill());
        drop(self.child.wait());
        drop(self.reader.take().map(JoinHandle::join));
        if thread::panicking() {
            self.seen.extend(self.lines.try_iter());
            eprintln!("--- log of the other process:\n{}\n---", self.seen.join("\n"));
        }
    }
}
