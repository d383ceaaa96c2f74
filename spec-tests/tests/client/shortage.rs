//! A process that runs out of file descriptors: its errors say so, and its servers are as they were.

use std::fs::File;
use std::process::Command;
use std::{env, thread};

use cenote_core::client::{ClientError, Selector};
use cenote_core::error::{Kind, RetryWrites, Stage};
use cenote_core::pool::CheckOutError;
use cenote_endpoint::{Fault, Script, Server};

use crate::shells::{Shell, on_all_runtimes};
use crate::world::{World, standalone};

on_all_runtimes!(without_file_descriptors);

const CHILD: &str = "CENOTE_TEST_HAS_FEW_FILES";

/// Repeats the test in a process that has few file descriptors.
fn without_file_descriptors(shell: Shell) {
    if env::var_os(CHILD).is_some() {
        return run_out_of_files(shell);
    }
    let test = thread::current().name().expect("that of the test").to_owned();
    let limited = "ulimit -n 128 && exec \"$0\" \"$@\"";
    let mut child = Command::new("sh");
    child.args(["-c", limited]).arg(env::current_exe().expect("this test"));
    child.args([test.as_str(), "--exact", "--nocapture"]).env(CHILD, "1");
    let output = child.output().expect("it runs");
    let printed = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && printed.contains("1 passed"), "{printed}{errors}");
}

fn run_out_of_files(shell: Shell) {
    let (endpoint, other) = (standalone(), standalone());
    let world = World::of(shell, &[&endpoint], "serverMonitoringMode=poll");
    world.ping();
    let idle = world.client.check_out(&Selector::Any).expect("the only connection");
    // A monitor that connects again and again.
    other.with(|server, now| server.set_fault(now, Script::new(Fault::Refuse)));
    let refused = World::of(shell, &[&other], "heartbeatFrequencyMS=500");
    refused.until("refused", |world| world.error().is_some());

    let mut files = Vec::new();
    refused.until("without files", |world| {
        while let Ok(file) = File::open("/dev/null") {
            files.push(file);
        }
        world.error().is_some_and(|error| error.contains("this process cannot open more files"))
    });
    let error = world.client.check_out(&Selector::Any).expect_err("it fails");
    let ClientError::Pool(error) = error else { panic!("{error}") };
    let CheckOutError::EstablishFailed { cause } = error.error() else { panic!("{error}") };
    assert_eq!((cause.stage(), cause.kind()), (Stage::Tcp, &Kind::Local), "{error}");
    assert!(cause.reason().starts_with("this process cannot open more files"), "{error}");
    assert_eq!(error.labels(RetryWrites::Enabled).count(), 0, "{error}");
    assert!(!error.is_retryable(), "{error}");
    assert!(world.kinds()[0].is_some(), "the server is still known");
    assert_eq!(world.count("ConnectionPoolCleared"), 0);

    drop(files);
    let second = world.client.check_out(&Selector::Any).expect("another connection");
    drop((idle, second));
    world.ping();
    other.with(Server::clear_faults);
    refused.ping();
    assert_eq!(world.count("ConnectionPoolCleared"), 0);
    world.client.close();
    refused.client.close();
}
