//! The official `cmap-format` files against a server of another project.

use std::env;
use std::path::PathBuf;

use cenote::formats::{self, Foreign, Outcome, Place, Played, Target, Verdict};

use crate::secantus::server::Server;

/// Where the specifications are. There is no default: a test that finds no files must not pass.
fn folder() -> PathBuf {
    let specifications = env::var_os("CENOTE_SPECIFICATIONS").expect(
        "CENOTE_SPECIFICATIONS is the folder of the specifications' folders; .ci/clients sets it",
    );
    PathBuf::from(specifications).join("connection-monitoring-and-pooling/tests/cmap-format")
}

// TF-03, and TF-16: one server for all of them, whose fail points are switched off again.
#[test]
fn every_file_passes_on_both_shells() {
    let server = Server::plain();
    let place = Foreign::new(&server.uri("")).expect("a server");
    let place = Place::Server(Box::new(place));
    let played = formats::play(&[folder()], &[Target::Tokio, Target::Mio], &place);
    let Played { outcomes, unplayed } = played.expect("test files");
    assert_eq!(unplayed, []);
    assert_eq!(outcomes.len(), 66);
    for Outcome { file, target, verdict, .. } in outcomes {
        assert_eq!(verdict, Verdict::Passed, "{} on {target}", file.display());
    }
}
