//! What servers are told of the client, if not all of it fits.

use bson::{Document, doc};
use cenote_core::connect::{ClientMetadata, DriverInfo, Environment};
use proptest::prelude::*;

use super::metadata::environment;

// HS-28, one step after the other.
#[test]
fn what_does_not_fit_is_left_out_in_order() {
    let lambda = |region: usize, os_name: usize| Environment {
        os_name: Some("o".repeat(os_name)),
        ..environment(&[
            ("AWS_LAMBDA_RUNTIME_API", "x"),
            ("AWS_REGION", &"r".repeat(region)),
            ("CLAUDECODE", "1"),
        ])
    };
    let with_agent = doc! { "name": "aws.lambda", "agent": "claude_code" };
    let without = doc! { "name": "aws.lambda" };
    let with_platform = |environment: &Environment, length: usize| {
        let mut client = ClientMetadata::new(None, environment).unwrap();
        client.append(DriverInfo::new("x", None, Some(&"p".repeat(length))).unwrap());
        let raw = client.to_document();
        assert!(raw.as_bytes().len() <= ClientMetadata::MAX_LENGTH);
        Document::try_from(raw).unwrap()
    };
    let region_goes = with_platform(&lambda(500, 5), 5);
    assert_eq!(region_goes.get_document("env").ok(), Some(&with_agent));

    let agent_goes = with_platform(&lambda(5, 5), 340);
    assert_eq!(agent_goes.get_document("env").ok(), Some(&without));
    assert!(agent_goes.get_document("os").unwrap().contains_key("name"));

    let os_goes = with_platform(&lambda(5, 500), 5);
    assert_eq!(os_goes.get_document("env").ok(), Some(&without));
    assert_eq!(os_goes.get_document("os").ok(), Some(&doc! { "type": "unknown" }));

    let env_goes = with_platform(&lambda(5, 5), 395);
    assert!(!env_goes.contains_key("env"));
    assert_eq!(env_goes.get_str("platform").map(str::len).ok(), Some("Rust|".len() + 395));

    let cut = with_platform(&lambda(5, 5), 600);
    assert!(cut.get_str("platform").unwrap().starts_with("Rust|pppp"));
    let length = cut.to_vec().unwrap().len();
    assert_eq!(length, ClientMetadata::MAX_LENGTH, "not shorter than it has to be");
}

#[test]
fn names_and_versions_that_do_not_fit_go_in_pairs() {
    let shortened = |appended: &[(usize, usize)]| {
        let mut client = ClientMetadata::new(None, &Environment::default()).unwrap();
        client.append(DriverInfo::new("", None, Some("p")).unwrap());
        for (name, version) in appended {
            let (name, version) = ("n".repeat(*name), "v".repeat(*version));
            client.append(DriverInfo::new(&name, Some(&version), None).unwrap());
        }
        let raw = client.to_document();
        let client = Document::try_from(&*raw).unwrap();
        assert!(!client.contains_key("platform"));
        let driver = client.get_document("driver").unwrap();
        let lengths =
            |key| driver.get_str(key).unwrap().split('|').map(str::len).collect::<Vec<_>>();
        (raw.as_bytes().len(), lengths("name"), lengths("version"))
    };
    let own = env!("CARGO_PKG_VERSION").len();
    // The last version is cut, the empty pair goes.
    let (length, names, versions) = shortened(&[(100, 100), (101, 300)]);
    assert_eq!((length, names, &versions[..2]), (512, vec![6, 100, 101], &[own, 100][..]));
    // Then the last name, then the pair, then the version and the name before it.
    let (length, names, versions) = shortened(&[(128, 300), (300, 100)]);
    assert_eq!((length, names, versions), (511, vec![6, 128], vec![own, 300]));
    let (length, names, versions) = shortened(&[(500, 500), (500, 500)]);
    assert_eq!((length, names.len(), versions), (512, 2, vec![own, 0]));
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
