use std::path::Path;
use std::time::Duration;

use serde_json::json;

use super::play_within;
use crate::conform::cmap::format::File;
use crate::conform::cmap::played::Failure;
use crate::conform::{Document, Place};

/// A thread of the operating system waits for ever, if it is let.
#[test]
fn a_check_out_that_is_never_served_comes_to_an_end() {
    let document = json!({
        "version": 1, "style": "unit", "description": "nobody gives it back",
        "poolOptions": { "maxPoolSize": 1 },
        "operations": [
            { "name": "ready" }, { "name": "checkOut" },
            { "name": "start", "target": "other" }, { "name": "checkOut", "thread": "other" },
            { "name": "waitForThread", "target": "other" },
        ],
        "events": [],
    });
    let file = File::from_document(&Document::of(Path::new("never.json"), document));
    let played = play_within(Duration::from_millis(300), &file.unwrap(), &Place::Endpoint);
    let (played, _) = played.unwrap();
    let Some(Failure::Script(what)) = played.failure else { panic!("it was served") };
    assert_eq!(what, "somebody still waited after 300 ms");
    assert_eq!(played.settled, Ok(()), "and everything comes home");
}
