//! What servers are told of the application, and of where it runs.

use std::process::Command;
use std::{env, thread};

use bson::{RawDocument, RawDocumentBuf};
use cenote_core::connect::Environment;
use cenote_endpoint::Endpoint;

use crate::shell::{Shell, on_all_runtimes};
use crate::world::{ping, plain, pool, with};

on_all_runtimes!(the_application_and_the_system, the_environment_of_the_process);

/// The client document of a hello.
fn told(shell: Shell, endpoint: &Endpoint, options: &str) -> RawDocumentBuf {
    let (pool, _) = pool(shell, &with(&endpoint.uri(), options));
    assert!(ping(&pool));
    endpoint.with(|server, _| server.statistics()).last_client.expect("metadata")
}

fn text<'a>(client: &'a RawDocument, document: &str, key: &str) -> &'a str {
    let document = client.get_document(document).expect("a document");
    document.get_str(key).expect("a text")
}

// HS-20, HS-21, HS-22, HS-23.
fn the_application_and_the_system(shell: Shell) {
    let client = told(shell, &plain(), "appname=shop");
    assert_eq!(text(&client, "application", "name"), "shop");
    assert_eq!(text(&client, "driver", "name"), "cenote");
    assert!(!text(&client, "driver", "version").is_empty());
    let system = text(&client, "os", "type");
    assert!(!cfg!(target_os = "linux") || system == "Linux", "{system}");
    assert_eq!(text(&client, "os", "architecture"), env::consts::ARCH);
    assert!(!client.get_str("platform").expect("a text").is_empty());
    let client = told(shell, &plain(), "");
    assert!(client.get("application").expect("whole").is_none());
}

/// Set for the child process.
const CHILD: &str = "CENOTE_METADATA_CHILD";

// HS-24, HS-25, HS-26. In a child process, which has an environment of its own.
fn the_environment_of_the_process(shell: Shell) {
    if let Some(region) = env::var_os(CHILD) {
        let client = told(shell, &plain(), "");
        let environment = client.get_document("env").expect("a document");
        if region == "long" {
            // HS-27, HS-28: of what does not fit, the environment goes first, but for its name.
            assert!(client.as_bytes().len() <= 512, "{client:?}");
            assert_eq!(environment, &*bson::rawdoc! { "name": "aws.lambda", "agent": "codex_cli" });
            assert!(
                client.get_document("os").expect("a document").iter().count() > 1,
                "{client:?}"
            );
            return;
        }
        assert_eq!(environment.get_str("name").ok(), Some("aws.lambda"));
        assert_eq!(environment.get_str("region").ok(), Some("us-east-2"));
        assert_eq!(environment.get_i32("memory_mb").ok(), Some(1024));
        assert_eq!(environment.get_str("agent").ok(), Some("codex_cli"));
        let container = environment.get_document("container").expect("a document");
        assert_eq!(container.get_str("orchestrator").ok(), Some("kubernetes"));
        return;
    }
    in_a_child("short", "us-east-2");
    in_a_child("long", &"r".repeat(600));
}

/// Runs the test once more, in a function of AWS in this region.
fn in_a_child(kind: &str, region: &str) {
    let test = thread::current().name().expect("that of the test").to_owned();
    let mut child = Command::new(env::current_exe().expect("this test"));
    child.args([test.as_str(), "--exact"]).env(CHILD, kind);
    for name in Environment::VARIABLES {
        child.env_remove(name);
    }
    child.env("AWS_EXECUTION_ENV", "AWS_Lambda_java8").env("AWS_REGION", region);
    child.env("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "1024");
    child.env("KUBERNETES_SERVICE_HOST", "10.0.0.1").env("CODEX_SANDBOX", "seatbelt");
    let output = child.output().expect("it runs");
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && printed.contains("1 passed"), "{printed}");
}
