//! `docs/options.md` is the table of options. `CENOTE_BLESS=1` writes it.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

use cenote_core::pool::{OptionSpec, OptionValue, PoolOptions};

#[test]
fn the_page_of_options_is_the_table() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/options.md");
    let page = fs::read_to_string(&path).expect("the page");
    let (before, _) = page.split_once("\n| option").expect("a table");
    let mut made = format!(
        "{before}\n| option | type | what it means | default | values | connection string | C, Python | traces |\n"
    );
    made.push_str("|---|---|---|---|---|---|---|---|\n");
    let mut options = PoolOptions::default();
    for (OptionSpec { name, about, default, values, uri, c_name, trace_key, .. }, value) in
        options.each()
    {
        let kind = match value {
            OptionValue::Count(_) => "`u32`",
            OptionValue::Number(_) => "`u64`",
            OptionValue::Time(_) => "`Duration`",
            OptionValue::Flag(_) => "`bool`",
            OptionValue::Maintenance(_) => "`Maintenance`",
            OptionValue::ReuseOrder(_) => "`ReuseOrder`",
        };
        let uri = uri.map_or(String::new(), |key| format!("`{key}`"));
        writeln!(
            made,
            "| `{name}` | {kind} | {about} | {default} | {values} | {uri} | `{c_name}` | `{trace_key}` |"
        )
        .expect("it fits");
    }
    if env::var_os("CENOTE_BLESS").is_some() {
        return fs::write(&path, &made).expect("it is written");
    }
    assert!(page == made, "docs/options.md is not the table: CENOTE_BLESS=1 writes it");
}
