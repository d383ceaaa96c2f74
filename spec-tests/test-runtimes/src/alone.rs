//! Tests that change or count what the whole process has: they run the executable again, for themselves alone.

use std::any::type_name;
use std::env;
use std::process::Command;

/// Names the test that this process is for.
const VARIABLE: &str = "CENOTE_TEST_ALONE";

/// Runs a test in a process of its own, on its main thread: `alone(|| …)` as the whole body of the test function.
///
/// # Panics
///
/// If the test fails there.
pub fn alone<F: FnOnce()>(test: F) {
    alone_with(&[], test);
}

/// The same with these variables in its environment.
///
/// # Panics
///
/// If the test fails there.
pub fn alone_with<F: FnOnce()>(variables: &[(&str, &str)], test: F) {
    // The type of a closure is named after the function that it stands in: `executable::module::test::{{closure}}`.
    let name = type_name::<F>().trim_end_matches("::{{closure}}");
    let (_, name) = name.split_once("::").expect("a test in an executable");
    if env::var_os(VARIABLE).is_some_and(|it| it == name) {
        return test();
    }
    let output = Command::new(env::current_exe().expect("this executable"))
        .args(["--exact", name, "--test-threads=1", "--nocapture"])
        .env(VARIABLE, name)
        .envs(variables.iter().copied())
        .output()
        .expect("a process");
    let [said, errors] =
        [output.stdout, output.stderr].map(|it| String::from_utf8_lossy(&it).into_owned());
    print!("{said}{errors}");
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{name} failed in its own process: {}",
        output.status
    );
}
