//! What a server is told of the client.

use bson::{Document, doc};
use cenote_core::connect::{
    ClientMetadata, DriverInfo, Environment, EstablishOptions, MetadataError,
};
use proptest::prelude::*;

fn environment(variables: &[(&str, &str)]) -> Environment {
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
        (DriverInfo::new("", None, None), MetadataError::NameMissing),
    ];
    for (made, error) in cases {
        assert_eq!(made.unwrap_err(), error);
    }
}

// HS-28, one step after the other.
#[test]
fn what_does_not_fit_is_left_out_in_order() {
    let lambda = |region: usize, os_name: usize| Environment {
        os_name: Some("o".repeat(os_name)),
        ..environment(&[("AWS_LAMBDA_RUNTIME_API", "x"), ("AWS_REGION", &"r".repeat(region))])
    };
    let with_platform = |environment: &Environment, length: usize| {
        let mut client = ClientMetadata::new(None, environment).unwrap();
        client.append(DriverInfo::new("x", None, Some(&"p".repeat(length))).unwrap());
        let raw = client.to_document();
        assert!(raw.as_bytes().len() <= ClientMetadata::MAX_LENGTH);
        Document::try_from(raw).unwrap()
    };
    let region_goes = with_platform(&lambda(500, 5), 5);
    assert_eq!(region_goes.get_document("env").ok(), Some(&doc! { "name": "aws.lambda" }));
    assert!(region_goes.get_document("os").unwrap().contains_key("name"));

    let os_goes = with_platform(&lambda(5, 500), 5);
    assert_eq!(os_goes.get_document("env").ok(), Some(&doc! { "name": "aws.lambda" }));
    assert_eq!(os_goes.get_document("os").ok(), Some(&doc! { "type": "unknown" }));

    let env_goes = with_platform(&lambda(5, 5), 395);
    assert!(!env_goes.contains_key("env"));
    assert_eq!(env_goes.get_str("platform").map(str::len).ok(), Some("Rust|".len() + 395));

    let cut = with_platform(&lambda(5, 5), 600);
    assert!(cut.get_str("platform").unwrap().starts_with("Rust|pppp"));
    let length = cut.to_vec().unwrap().len();
    assert_eq!(length, ClientMetadata::MAX_LENGTH, "not shorter than it has to be");
}

proptest! {
    // HS-27
    #[test]
    fn it_always_fits(
        app in ".{0,32}", texts in prop::collection::vec(".{0,400}", 6), faas in any::<bool>(),
    ) {
        let mut environment = environment(&[]);
        if faas {
            environment.variables.insert("VERCEL".to_owned(), "1".to_owned());
            environment.variables.insert("VERCEL_REGION".to_owned(), texts[0].clone());
        }
        environment.os_type = Some(texts[1].clone());
        environment.os_name = Some(texts[2].clone());
        environment.has_dockerenv = true;
        let mut client = ClientMetadata::new(Some(&app), &environment).unwrap();
        if let Ok(info) = DriverInfo::new(&texts[3], Some(&texts[4]), Some(&texts[5])) {
            client.append(info);
        }
        let document = client.to_document();
        prop_assert!(document.as_bytes().len() <= 512);
        let document = Document::try_from(document).unwrap();
        prop_assert!(document.get_document("driver").unwrap().contains_key("version"));
        prop_assert!(document.get_document("os").unwrap().contains_key("type"));
    }
}
