//! A pool without sockets, in virtual time; the README shows this program and what it prints.

use cenote_core::pool::*;
use std::{collections::VecDeque, error::Error, time::Duration};

struct Text; // The types that the shell provides: sockets, waiters, causes of errors.
impl PoolTypes for Text {
    type Conn = String;
    type Waiter = &'static str;
    type Cause = String;
}

fn main() -> Result<(), Box<dyn Error>> {
    play(|line| println!("{line}"))
}

fn play(mut print: impl FnMut(String)) -> Result<(), Box<dyn Error>> {
    let mut now = Instant::ORIGIN; // Time is an argument.
    let mut actions = VecDeque::new();
    let options =
        PoolOptions::default().with_max_pool_size(1).with_max_idle_time(Duration::from_secs(60));
    let mut pool = PoolState::<Text>::new(now, options, &mut actions)?;
    let purpose = Purpose::Other;
    let request =
        |id, waiter| Input::CheckOutRequested { id: WaiterId(id), waiter, deadline: None, purpose };
    let mut inputs = VecDeque::from([Input::Ready, request(1, "alice"), request(2, "bob")]);
    loop {
        while let Some(action) = actions.pop_front() {
            match action {
                // Connect, send hello, authenticate. Here it always succeeds.
                Action::StartEstablish { id, .. } => inputs
                    .push_back(Input::EstablishSucceeded { id, conn: format!("socket of {id}") }),
                // Wake the caller. Here it uses the connection and returns it at once.
                Action::Deliver { waiter, outcome: Ok((id, conn)) } => {
                    print(format!("{now} {waiter} gets {conn}"));
                    inputs.push_back(Input::CheckedIn { id, conn, health: Health::Healthy });
                }
                Action::EmitEvent(event) => print(format!("{now} {}", event.name())),
                Action::CloseSocket { conn, .. } => drop(conn),
                // Nothing fails here, and no response is pending.
                Action::Deliver { outcome: Err(_), .. }
                | Action::AbortEstablish { .. }
                | Action::StartDrain { .. }
                | Action::AbortDrain { .. }
                | Action::Interrupt { .. }
                | Action::ReportLeak { .. }
                | Action::ReportUnanswered { .. } => {}
            }
        }
        now = now + Duration::from_millis(1);
        let input = match (inputs.pop_front(), pool.next_deadline()) {
            (Some(input), _) => input,
            // Sleep until the pool is due. Here: its connection has been idle for a minute.
            (None, Some(due)) => {
                now = due.at;
                Input::Timer
            }
            (None, None) => return Ok(()),
        };
        pool.handle(now, input, &mut actions)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_readme_shows_it_and_what_it_prints() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
        let read = |path| fs::read_to_string(format!("{folder}/{path}")).expect(path);
        let (readme, source) = (read("README.md"), read("core/examples/sans_io.rs"));
        let (_, source) = source.split_once("\n\n").expect("a program below its first line");
        let (program, _) = source.split_once("\n#[cfg(test)]").expect("tests");
        assert!(readme.contains(&format!("```rust\n{program}```\n")));
        let mut printed = String::new();
        play(|line| printed += &format!("{line}\n")).expect("all inputs are valid");
        assert!(readme.contains(&format!("```text\n{printed}```\n")), "{printed}");
    }
}
