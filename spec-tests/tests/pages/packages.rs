//! The packages as a registry shows them, and what `RELEASING.md` promises about their enums.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::requirements::files_in;

/// Their API in Rust serves the project's own tools, and has no promise.
const TOOLS: [&str; 6] =
    ["cenote", "cenote-c", "cenote-fuzz", "cenote-lab", "cenote-replay", "cenote-test-runtimes"];

pub(super) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a folder of the workspace").to_owned()
}

pub(super) fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

struct Package {
    name: String,
    folder: PathBuf,
    metadata: Value,
}

impl Package {
    fn readme(&self) -> String {
        text(&self.folder.join("README.md"))
    }
}

/// The packages of the workspace, as cargo sees them.
fn packages() -> Vec<Package> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version=1", "--manifest-path"])
        .arg(root().join("Cargo.toml"))
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let packages: Vec<_> = metadata["packages"].as_array().expect("packages").clone();
    packages
        .into_iter()
        .map(|metadata| {
            let manifest = Path::new(metadata["manifest_path"].as_str().expect("a path"));
            let folder = manifest.parent().expect("a folder").to_owned();
            let name = metadata["name"].as_str().expect("a name").to_owned();
            Package { name, folder, metadata }
        })
        .collect()
}

#[test]
fn each_package_has_what_a_registry_shows() {
    let mut wrong = Vec::new();
    let (published, others): (Vec<_>, Vec<_>) =
        packages().into_iter().partition(|package| package.metadata["publish"].is_null());
    let others: BTreeSet<_> = others.into_iter().map(|package| package.name).collect();
    for package in published {
        let mut demand = |is_met: bool, what: &str| {
            if !is_met {
                wrong.push(format!("{}: {what}", package.name));
            }
        };
        let words = |key: &str| {
            let values = package.metadata[key].as_array().expect("a list").clone();
            values.iter().map(|word| word.as_str().expect("a word").to_owned()).collect::<Vec<_>>()
        };
        let keywords = words("keywords");
        let description = package.metadata["description"].as_str().unwrap_or_default();
        demand(description.len() > 20 && !description.ends_with('.'), "description");
        demand((1..=5).contains(&keywords.len()), "one to five keywords");
        demand(keywords.iter().all(|word| word.len() <= 20), "keywords of 20 bytes at most");
        demand((1..=5).contains(&words("categories").len()), "one to five categories");
        demand(package.metadata["rust_version"].is_string(), "rust-version");
        demand(package.metadata["license"] == "MIT OR Apache-2.0", "license");
        demand(package.metadata["readme"] == "README.md", "readme");
        demand(
            package.readme().starts_with(&format!("# {}\n", package.name)),
            "README.md with the name as its title",
        );
        for licence in ["LICENSE-MIT", "LICENSE-APACHE"] {
            let own = text(&package.folder.join(licence));
            demand(own == text(&root().join(licence)), licence);
        }
        let manifest = text(&package.folder.join("Cargo.toml"));
        demand(manifest.contains("\nrepository.workspace = true\n"), "repository.workspace");
        let docs = &package.metadata["metadata"]["docs"]["rs"];
        demand(docs["rustdoc-args"][1] == "docsrs", "docs.rs metadata");
        for dependency in package.metadata["dependencies"].as_array().expect("a list") {
            let name = dependency["name"].as_str().expect("a name");
            let is_there = dependency["kind"] == "dev" || !others.contains(name);
            demand(is_there, &format!("{name} is not published"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

// A page of a package shows its README without the repository around it.
#[test]
fn links_of_package_pages_lead_somewhere() {
    let packages = packages();
    let mut wrong = Vec::new();
    for package in packages.iter().filter(|package| package.metadata["publish"].is_null()) {
        let readme = package.readme();
        if readme.contains("]: ") {
            wrong.push(format!(
                "{}: a link by reference, which this test does not read",
                package.name
            ));
        }
        for link in readme.split("](").skip(1) {
            let link = link.split(')').next().expect("a split has a first part");
            if !leads_somewhere(link, package, &readme, &packages) {
                wrong.push(format!("{}: {link}", package.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

fn leads_somewhere(link: &str, of: &Package, readme: &str, packages: &[Package]) -> bool {
    if let Some(heading) = link.strip_prefix('#') {
        let anchor =
            |line: &str| line.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
        return readme
            .lines()
            .filter(|line| line.starts_with('#'))
            .any(|line| anchor(line) == heading);
    }
    let Some(page) = link.strip_prefix("https://docs.rs/") else {
        // A file that is in the package.
        return !link.contains(':') && !link.contains("..") && of.folder.join(link).exists();
    };
    let page = page.strip_prefix("crate/").unwrap_or(page);
    let (name, rest) = page.split_once('/').unwrap_or((page, ""));
    let Some(target) = packages.iter().find(|package| package.name == name) else { return false };
    match rest.strip_prefix("latest/source/") {
        Some(file) => target.folder.join(file).exists(),
        None => rest.is_empty(),
    }
}

/// The public enums of a library, as `crate::module::Name`, and whether each is `#[non_exhaustive]`.
/// The lint `unreachable_pub` sees to it that what is `pub` is public.
fn public_enums(package: &Package) -> Vec<(String, bool)> {
    let source = package.folder.join("src");
    let mut files = Vec::new();
    collect(&source, &mut files);
    let mut enums = Vec::new();
    for file in files {
        let module = file.strip_prefix(&source).expect("a file of the package").with_extension("");
        let module = module.iter().next().expect("a name").to_string_lossy().into_owned();
        let content = text(&file);
        let lines: Vec<&str> = content.lines().collect();
        for (at, line) in lines.iter().enumerate() {
            let Some(name) = line.trim_start().strip_prefix("pub enum ") else { continue };
            let name = name.split(|it: char| !it.is_alphanumeric()).next().expect("a first part");
            let attributes =
                lines[..at].iter().rev().take_while(|line| !line.is_empty() && **line != "}");
            let is_open = attributes.into_iter().any(|line| line.trim() == "#[non_exhaustive]");
            enums.push((format!("{}::{module}::{name}", package.name.replace('-', "_")), is_open));
        }
    }
    enums
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|it| it == "rs") {
            files.push(path);
        }
    }
}

#[test]
fn an_enum_is_complete_only_where_releasing_md_promises_it() {
    let page = text(&root().join("RELEASING.md"));
    let promised: BTreeSet<String> = page
        .lines()
        .filter(|line| line.starts_with("| `cenote_"))
        .flat_map(|line| line.split('|').nth(1).expect("a first column").split('`'))
        .filter(|name| name.contains("::"))
        .map(str::to_owned)
        .collect();
    let libraries = packages().into_iter().filter(|package| !TOOLS.contains(&&*package.name));
    let enums: Vec<_> = libraries.flat_map(|package| public_enums(&package)).collect();
    let complete: BTreeSet<String> =
        enums.iter().filter(|(_, is_open)| !is_open).map(|(name, _)| name.clone()).collect();
    assert!(enums.len() > complete.len() && !promised.is_empty());
    assert_eq!(complete, promised, "without #[non_exhaustive], and in RELEASING.md");
}

#[test]
fn scripts_that_workflows_and_pages_name_exist() {
    let workflows = root().join(".github/workflows");
    let mut files: Vec<_> = fs::read_dir(workflows)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    files.extend(
        ["CONTRIBUTING.md", "RELEASING.md", "SECURITY.md", ".ci/run", ".ci/release"]
            .map(|name| root().join(name)),
    );
    let mut missing = Vec::new();
    for file in &files {
        for script in text(file).split(".ci/").skip(1) {
            let script = script.split(|it: char| !it.is_ascii_lowercase() && it != '-').next();
            let script = script.expect("a first part");
            if !script.is_empty() && !root().join(".ci").join(script).exists() {
                missing.push(format!("{}: .ci/{script}", file.display()));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

/// The parts that the jobs of a workflow name, sorted.
fn parts_of_workflow(file: &str) -> Vec<String> {
    let workflow = text(&root().join(".github/workflows").join(file));
    let jobs = workflow.lines().skip_while(|line| line.trim() != "parts:").skip(1);
    let jobs = jobs.map_while(|line| line.trim().strip_prefix("- "));
    let mut parts: Vec<_> = jobs
        .take_while(|job| !job.contains(':'))
        .flat_map(|job| job.split_whitespace().map(str::to_owned))
        .collect();
    parts.sort_unstable();
    parts
}

/// The parts of a script, sorted.
fn parts_of_script(script: &str) -> Vec<String> {
    let listed = Command::new(root().join(script)).arg("--list").output().expect("it runs");
    let listed = String::from_utf8(listed.stdout).expect("UTF-8");
    let mut listed: Vec<_> = listed.lines().map(str::to_owned).collect();
    listed.sort_unstable();
    assert!(!listed.is_empty(), "{script} --list");
    listed
}

#[test]
fn workflows_call_each_part_of_the_gate_and_of_the_night_once() {
    for (workflow, script) in [("ci.yml", ".ci/run"), ("nightly.yml", ".ci/nightly")] {
        assert_eq!(parts_of_workflow(workflow), parts_of_script(script), "{workflow} and {script}");
    }
}

#[test]
fn workflows_run_the_three_scripts_and_nothing_else() {
    for workflow in ["ci.yml", "nightly.yml"] {
        let text = text(&root().join(".github/workflows").join(workflow));
        let steps = text.lines().map(|line| line.trim().trim_start_matches("- "));
        for line in steps.filter_map(|line| line.strip_prefix("run: ")) {
            let (command, parts) = line.split_once(' ').unwrap_or((line, ""));
            match command {
                "rustup" | ".ci/fetch-specifications" => {}
                ".ci/run" | ".ci/nightly" | ".ci/release" => {
                    let listed = parts_of_script(command);
                    let is_there = |part: &str| listed.iter().any(|it| it == part);
                    let is_matrix = parts == "${{ matrix.parts }}";
                    assert!(is_matrix || parts.split(' ').all(is_there), "{workflow}: {line}");
                }
                _ => panic!("{workflow}: {line}"),
            }
        }
    }
}

#[test]
fn the_docs_have_at_most_55_000_words() {
    let pages = files_in(&root().join("docs"), &["md"]);
    let words: usize = pages.iter().map(|page| text(page).split_whitespace().count()).sum();
    assert!((1..=55_000).contains(&words), "{words} words");
}
