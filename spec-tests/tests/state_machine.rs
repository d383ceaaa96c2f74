//! Holds `docs/state-machine.md` to what the machine does.
//!
//! How: the page is made by trying every input in every state and compared with the file. After a
//! wanted change, `CENOTE_BLESS=1 cargo test -p cenote --test state_machine` rewrites the file,
//! and the diff is the review.

use std::path::Path;

use cenote::state_machine::{Kind, page};

#[test]
fn the_page_tells_what_the_machine_does() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/state-machine.md");
    let page = page();
    if std::env::var_os("CENOTE_BLESS").is_some() {
        std::fs::write(&path, &page).expect("docs/ can be written");
    }
    let file = std::fs::read_to_string(&path).expect("docs/state-machine.md");
    assert_eq!(file, page, "run with CENOTE_BLESS=1 and review the diff");
}

#[test]
fn every_input_has_its_rows() {
    let page = page();
    for kind in Kind::ALL {
        assert!(page.contains(&format!("\n| {} | ", kind.name())), "{} is missing", kind.name());
    }
}
