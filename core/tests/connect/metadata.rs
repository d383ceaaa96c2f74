//! What a server is told of the client.

use bson::{Document, doc};
use cenote_core::connect::{
    ClientMetadata, DriverInfo, Environment, EstablishOptions, MetadataError,
};

pub(super) fn environment(variables: &[(&str, &str)]) -> Environment {
    let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    for (name, _) in variables {
        assert!(Environment::VARIABLES.contains(name), "{name} is not asked for");
    }
    Environment { variables: variables.iter().map(own).collect(), ..Environment::default() }
}

fn document(environment: &Environment) -> Document {
    let client = ClientMetadata::new(None, environment).expect("no name");
    Document::try_from(client.to_document()).expect("a document of ours")
}

// HS-20 to HS-23
#[test]
fn what_is_always_there() {
    let version = env!("CARGO_PKG_VERSION");
    let expected = doc! {
        "driver": { "name": "cenote", "version": version }, "os": { "type": "unknown" },
        "platform": "Rust",
    };
    assert_eq!(document(&Environment::default()), expected);
    assert!(!Environment::default().is_faas());

    let text = |text: &str| Some(text.to_owned());
    let environment = Environment {
        os_type: text("Linux"),
        os_name: text("Debian 13"),
        architecture: text("x86_64"),
        os_version: text("6.12"),
        ..Environment::default()
    };
    let client = ClientMetadata::new(Some("shop"), &environment).unwrap();
    let document = Document::try_from(client.to_document()).unwrap();
    assert_eq!(document.get_document("application").ok(), Some(&doc! { "name": "shop" }));
    let os =
        doc! { "type": "Linux", "name": "Debian 13", "architecture": "x86_64", "version": "6.12" };
    assert_eq!(document.get_document("os").ok(), Some(&os));
}

// HS-24 to HS-26, HS-48
#[test]
fn where_it_runs() {
    let lambda = ("AWS_EXECUTION_ENV", "AWS_Lambda_java8");
    let cases = [
        (
            vec![lambda, ("AWS_REGION", "us-east-2"), ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "1024")],
            Some(doc! { "name": "aws.lambda", "memory_mb": 1024, "region": "us-east-2" }),
        ),
        (vec![("AWS_LAMBDA_RUNTIME_API", "x")], Some(doc! { "name": "aws.lambda" })),
        (vec![("AWS_EXECUTION_ENV", "EC2")], None),
        (vec![("FUNCTIONS_WORKER_RUNTIME", "node")], Some(doc! { "name": "azure.func" })),
        (
            vec![
                ("K_SERVICE", "name"),
                ("FUNCTION_MEMORY_MB", "1024"),
                ("FUNCTION_TIMEOUT_SEC", "60"),
                ("FUNCTION_REGION", "us-central1"),
            ],
            Some(doc! {
                "name": "gcp.func", "timeout_sec": 60, "memory_mb": 1024, "region": "us-central1",
            }),
        ),
        (
            vec![("VERCEL", "1"), lambda, ("VERCEL_REGION", "cdg1"), ("AWS_REGION", "x")],
            Some(doc! { "name": "vercel", "region": "cdg1" }),
        ),
        (vec![lambda, ("FUNCTIONS_WORKER_RUNTIME", "node")], None),
        (vec![("VERCEL", "1"), ("K_SERVICE", "name")], None),
        (
            vec![lambda, ("AWS_REGION", ""), ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "big")],
            Some(doc! { "name": "aws.lambda" }),
        ),
        (
            vec![lambda, ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "2147483648")],
            Some(doc! { "name": "aws.lambda" }),
        ),
        (vec![("VERCEL", "")], None),
        (
            vec![lambda, ("KUBERNETES_SERVICE_HOST", "1")],
            Some(doc! { "name": "aws.lambda", "container": { "orchestrator": "kubernetes" } }),
        ),
    ];
    for (variables, expected) in cases {
        let document = document(&environment(&variables));
        assert_eq!(document.get_document("env").ok(), expected.as_ref(), "{variables:?}");
        let is_faas = expected.is_some_and(|expected| expected.contains_key("name"));
        assert_eq!(environment(&variables).is_faas(), is_faas, "SM-02 {variables:?}");
    }
    let docker = Environment { has_dockerenv: true, ..Environment::default() };
    let expected = doc! { "container": { "runtime": "docker" } };
    assert_eq!(document(&docker).get_document("env").ok(), Some(&expected));
}

#[test]
fn which_agent_runs_it() {
    let long = format!("{}ü", "x".repeat(63));
    let both = [("GOOSE_AGENT", "1"), ("CLAUDECODE", "0"), ("AI_AGENT", "mine")];
    let cases: [(&[(&str, &str)], _); 12] = [
        (&[("CLAUDECODE", "0")], Some("claude_code")),
        (&[("CLAUDE_CODE_ENTRYPOINT", "cli")], Some("claude_code")),
        (&[("AUGMENT_AGENT", "1")], Some("auggie_cli")),
        (&[("OPENCODE", "1")], Some("opencode_client")),
        (&[("TRAE_AI_SHELL_ID", "7")], Some("trae_ai")),
        (&[("GOOSE_TERMINAL", "1")], Some("goose")),
        (&both, Some("claude_code")),
        (&[("CURSOR_AGENT", " \t"), ("AI_AGENT", " My Agent\n")], Some("my agent")),
        (&[("AI_AGENT", "TRUE")], Some("ai_agent")),
        (&[("AI_AGENT", "1")], Some("ai_agent")),
        (&[("AI_AGENT", " ")], None),
        (&[("AI_AGENT", &long)], Some(&long[..63])),
    ];
    for (variables, expected) in cases {
        let environment = environment(variables);
        let document = document(&environment);
        let agent = document.get_document("env").ok().map(|env| env.get_str("agent").unwrap());
        assert_eq!(agent, expected, "{variables:?}");
        assert!(!environment.is_faas());
    }
}

// HS-29
#[test]
fn drivers_are_appended_once() {
    let mut client = ClientMetadata::new(None, &Environment::default()).unwrap();
    let library = || DriverInfo::new("library", Some("1.2"), Some("Library Platform")).unwrap();
    assert!(client.append(library()));
    assert!(client.append(DriverInfo::new("framework", Some("2.0"), None).unwrap()));
    assert!(!client.append(library()), "it is there");
    let same = DriverInfo::new("framework", Some("2.0"), Some("")).unwrap();
    assert!(!client.append(same), "an empty text is none");
    assert!(
        client.append(DriverInfo::new("Framework", Some("2.0"), None).unwrap()),
        "case matters"
    );

    let document = Document::try_from(client.to_document()).unwrap();
    let driver = document.get_document("driver").unwrap();
    assert_eq!(driver.get_str("name").ok(), Some("cenote|library|framework|Framework"));
    let version = format!("{}|1.2|2.0|2.0", env!("CARGO_PKG_VERSION"));
    assert_eq!(driver.get_str("version").ok(), Some(version.as_str()));
    assert_eq!(document.get_str("platform").ok(), Some("Rust|Library Platform"));
}

/// The prose test 10 of the specification.
#[test]
fn names_and_versions_are_lists_of_one_length() {
    type Appended<'a> = (&'a str, Option<&'a str>, Option<&'a str>);
    let own = env!("CARGO_PKG_VERSION");
    let cases: [(&[Appended<'_>], &str, &str); 8] = [
        (&[("", None, None), ("F2", None, None)], "||F2", "||"),
        (&[("F1", None, None), ("F2", Some("2.0"), None)], "|F1|F2", "||2.0"),
        (&[("F1", None, None)], "|F1", "|"),
        (&[("F1", Some(own), None)], "|F1", &format!("|{own}")),
        (&[("cenote", Some(own), None)], "|cenote", &format!("|{own}")),
        (&[("", Some("1.0"), None), ("", Some("2.0"), None)], "||", "|1.0|2.0"),
        (&[("F1", Some("1.0"), Some("P1")), ("F1", Some("1.0"), Some("P2"))], "|F1|F1", "|1.0|1.0"),
        (&[("F1", None, None), ("F1", Some(""), None)], "|F1", "|"),
    ];
    for (appended, names, versions) in cases {
        let mut client = ClientMetadata::new(None, &Environment::default()).unwrap();
        for (name, version, platform) in appended {
            client.append(DriverInfo::new(name, *version, *platform).unwrap());
        }
        let document = Document::try_from(client.to_document()).unwrap();
        let expected =
            doc! { "name": format!("cenote{names}"), "version": format!("{own}{versions}") };
        assert_eq!(document.get_document("driver").ok(), Some(&expected), "{appended:?}");
    }
}

// HS-30: connections that are being established are not told.
#[test]
fn later_metadata_is_for_later_connections() {
    let mut client = ClientMetadata::new(None, &Environment::default()).unwrap();
    let before = EstablishOptions::for_client(&client);
    assert!(client.append(DriverInfo::new("orm", None, None).unwrap()));
    let after = EstablishOptions::for_client(&client);
    let name = |options: &EstablishOptions| {
        options.client.get_document("driver").unwrap().get_str("name").unwrap().to_owned()
    };
    assert_eq!([name(&before), name(&after)], ["cenote", "cenote|orm"]);
}

// HS-20, HS-29
#[test]
fn what_cannot_be_said() {
    let new = ClientMetadata::new(Some(&"ü".repeat(65)), &Environment::default());
    assert_eq!(new.unwrap_err(), MetadataError::AppNameTooLong { length: 130 });
    assert!(ClientMetadata::new(Some(&"ü".repeat(64)), &Environment::default()).is_ok());
    let cases = [
        (DriverInfo::new("a|b", None, None), MetadataError::Delimiter { field: "name" }),
        (DriverInfo::new("a", Some("|"), None), MetadataError::Delimiter { field: "version" }),
        (DriverInfo::new("a", None, Some("b|")), MetadataError::Delimiter { field: "platform" }),
    ];
    for (made, error) in cases {
        assert_eq!(made.unwrap_err(), error);
    }
}
