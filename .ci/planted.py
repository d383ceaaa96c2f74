"""Bugs planted in a copy of the workspace, all in one build, where the environment variable CENOTE_MUTATION chooses
among them; and the tests and commands that may notice one. For .ci/mutations; Python 3.11 or newer."""
import collections, concurrent.futures, functools, json, os, pathlib, re, subprocess, sys, tempfile, time, tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
COPY = ROOT / "target/mutations"
PARTS = ["core", "shell-tokio", "shell-mio", "spec-tests", "fuzz", "docs", ".ci", ".github", "Cargo.toml",
         "Cargo.lock", "README.md", "CHANGELOG.md", "clippy.toml"]
ENVIRONMENT = os.environ | {"RUST_BACKTRACE": "0", "PROPTEST_DISABLE_FAILURE_PERSISTENCE": "1",
                            "PROPTEST_RNG_SEED": "1"}
# The official test files that the core plays.
SPECIFICATIONS = ROOT / os.environ.get("CENOTE_SPECIFICATIONS", "../shared/upstream")
if (SPECIFICATIONS / "source").is_dir():
    SPECIFICATIONS /= "source"
OFFICIAL = [SPECIFICATIONS / folder / "tests" for folder in (
    "connection-monitoring-and-pooling", "server-discovery-and-monitoring", "server-selection", "max-staleness",
    "connection-string", "uri-options", "auth", "initial-dns-seedlist-discovery")]
# Also writes which bugs a run reaches, where CENOTE_REACHED says.
SWITCH = '''
/// Which planted bug this run is of.
pub(crate) mod mutation {
    use std::collections::BTreeSet;
    use std::sync::{Mutex, OnceLock};
    pub(crate) fn is(number: u32) -> bool {
        static CHOSEN: OnceLock<u32> = OnceLock::new();
        static FILE: OnceLock<Option<std::ffi::OsString>> = OnceLock::new();
        static REACHED: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());
        if let Some(file) = FILE.get_or_init(|| std::env::var_os("CENOTE_REACHED")) {
            let is_new = REACHED.lock().map(|mut reached| reached.insert(number));
            if is_new.unwrap_or(false) {
                let file = std::fs::OpenOptions::new().append(true).create(true).open(file);
                let line = std::format!("{number}\\n");
                let _ = file.and_then(|mut file| std::io::Write::write_all(&mut file, line.as_bytes()));
            }
        }
        let chosen = || std::env::var("CENOTE_MUTATION").ok()?.parse().ok();
        *CHOSEN.get_or_init(|| chosen().unwrap_or(0)) == number
    }
}
'''
Package = collections.namedtuple("Package", "name folder files")
Suite = collections.namedtuple("Suite", "package target prefix")
Test = collections.namedtuple("Test", "program folder name")
# Whether it was noticed, after how long, and the test that noticed it.
Play = collections.namedtuple("Play", "noticed seconds test", defaults=[None])

def render(text, edits, begin=0, end=None):
    """The text between two places with those edits that lie there: each (begin, end, new), where `new` is called with
    what renders a part of the old text. Edits may lie in one another, and in the same place."""
    end = len(text) if end is None else end
    edits = sorted((edit for edit in edits if begin <= edit[0] and edit[1] <= end), key=lambda it: (it[0], -it[1]))
    out = []
    while edits:
        (first, last, new), *rest = edits
        # What is inserted has nothing in it: others may be inserted in the same place.
        inner = [edit for edit in rest if edit[1] <= last and first < last]
        out += [text[begin:first], new(lambda begin, end, inner=inner: render(text, inner, begin, end))]
        begin, edits = last, [edit for edit in rest if edit not in inner]
    return "".join(out) + text[begin:end]

def place(path, content):
    """Writes a file unless it already has this content, so that cargo rebuilds as little as possible."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_bytes() != content:
        path.write_bytes(content)

def copy_workspace(changed, libraries):
    """Copies the workspace with other texts of the files in `changed`, and tests only in the libraries of those packages."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *PARTS]
    listed = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    listed = [name for name in listed if (ROOT / name).exists()]
    for part in PARTS:
        for path in (COPY / part).rglob("*"):
            if path.is_file() and str(path.relative_to(COPY)) not in listed:
                path.unlink()
    texts = dict(changed)
    for crate in {path.split("/src/")[0] for path in changed}:
        library = f"{crate}/src/lib.rs"
        texts[library] = texts.get(library, (ROOT / library).read_text()) + SWITCH
    # The other version keeps cargo from confusing these packages with those of the workspace in the target folder,
    # which both share because they have the same dependencies.
    texts["Cargo.toml"] = (ROOT / "Cargo.toml").read_text().replace('\nversion = "0.1.0"', '\nversion = "0.1.1"', 1)
    for package in suites().values():
        if package.name not in libraries:
            text = (ROOT / package.folder / "Cargo.toml").read_text()
            text = text if "[lib]\n" in text else text + "\n[lib]\n"
            texts[f"{package.folder}/Cargo.toml"] = text.replace("[lib]\n", "[lib]\ntest = false\n")
    for name in listed:
        place(COPY / name, texts[name].encode() if name in texts else (ROOT / name).read_bytes())

@functools.cache
def suites():
    """The packages by name, each with its executables that can name their tests, by the file of each."""
    command = ["cargo", "metadata", "--no-deps", "--offline", "--format-version", "1"]
    metadata = json.loads(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout)
    packages = {}
    for package in metadata["packages"]:
        manifest = pathlib.Path(package["manifest_path"])
        mute = {it["name"] for it in tomllib.loads(manifest.read_text()).get("test", ()) if not it.get("harness", True)}
        files = {pathlib.Path(it["src_path"]): it["name"] for it in package["targets"]
                 if it["kind"] == ["test"] and it["name"] not in mute and not it.get("required-features")}
        folder = str(manifest.parent.relative_to(ROOT))
        packages[package["name"]] = Package(package["name"], folder, files)
    return packages

def suite(name, package):
    """The executable of a package that has a suite, and the prefix of its tests there: the suite is a file or a folder,
    and an executable by itself or a module of one."""
    folder, files = suites()[package][1:]
    found = [path for path in (ROOT / folder / "tests").rglob("*") if path.stem == name and path.suffix in ("", ".rs")]
    path = min(found, key=lambda path: len(path.parts))
    for file, target in files.items():
        home = file.parent if file.name == "main.rs" else file
        if path.is_relative_to(home):
            modules = [part.removesuffix(".rs") + "::" for part in path.relative_to(home).parts]
            return Suite(package, target, "".join(modules))
    sys.exit(f"no executable of {package} has the suite {name}")

def cargo(*arguments):
    """Whether cargo succeeds in the copy, and its messages."""
    environment = os.environ | {"CARGO_TARGET_DIR": str(ROOT / "target")}
    command = ["cargo", *arguments, "--workspace", "--quiet", "--message-format=json"]
    done = subprocess.run(command, cwd=COPY, env=environment, stdout=subprocess.PIPE, text=True)
    return done.returncode == 0, [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]

def build(targets):
    """The tests of the executables with these names, and of the libraries that have tests in the copy, by the names of
    package and executable; and the programs by name."""
    messages = []
    for arguments in [["test", "--no-run", "--lib", *(it for name in targets for it in ("--test", name))],
                      ["build", "--profile", "test", "--bin", "cenote", "--bin", "cenote-lab"]]:
        succeeds, more = cargo(*arguments)
        if not succeeds:
            sys.exit("".join(it["message"]["rendered"] for it in more if it["reason"] == "compiler-message"))
        messages += more
    names = {package.folder: package.name for package in suites().values()}
    tests, programs = {}, {}
    for message in messages:
        if message["reason"] != "compiler-artifact" or not message["executable"]:
            continue
        target, folder = message["target"], pathlib.Path(message["manifest_path"]).parent
        if message["profile"]["test"]:
            tests[names[str(folder.relative_to(COPY))], target["name"]] = tests_of(message["executable"], folder)
        else:
            program = programs[target["name"]] = COPY / target["name"]
            place(program, pathlib.Path(message["executable"]).read_bytes())
            program.chmod(0o755)
    return tests, programs

def tests_of(executable, folder):
    command = [executable, "--list", "--format", "terse"]
    listed = subprocess.run(command, check=True, cwd=folder, stdout=subprocess.PIPE, text=True)
    return [Test(executable, folder, line.removesuffix(": test")) for line in listed.stdout.splitlines()
            if line.endswith(": test")]

def run(command, folder, limit, number=0, **environment):
    """Whether it succeeds (None: does not end within the limit), and the seconds that took."""
    begun = time.monotonic()
    environment = ENVIRONMENT | {"CENOTE_MUTATION": str(number)} | environment
    process = subprocess.Popen(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, start_new_session=True,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        succeeds = process.wait(limit) == 0
    except subprocess.TimeoutExpired:
        succeeds = None
        os.killpg(process.pid, 9)
        process.wait()
    return succeeds, time.monotonic() - begun

def in_parallel(function, items, workers=2):
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        return list(pool.map(function, items))

class Command:
    """A tool that is one command, or several."""
    def __init__(self, *commands, folder=ROOT):
        self.commands, self.folder = commands, folder
        self.limit = 0
        for command in commands:
            succeeds, seconds = run(command, folder, 300)
            if not succeeds:
                sys.exit(f"fails without a planted bug: {' '.join(map(str, command))}")
            self.limit = max(self.limit, 10 + 5 * seconds)

    def play(self, number, **_):
        seconds = 0
        for command in self.commands:
            succeeds, more = run(command, self.folder, self.limit, number)
            seconds += more
            if not succeeds:
                return Play(True, seconds)
        return Play(False, seconds)

class Tests:
    """A tool that is many tests, each in a process of its own. Only those that reach a bug are played on it, until one
    fails: first those that name the rule that it breaks, then the shortest, for `patience` seconds. With `again` a
    failure has to repeat."""
    def __init__(self, tests, workers=2, again=False):
        self.again = again
        with tempfile.TemporaryDirectory() as folder:
            def record(numbered):
                number, test = numbered
                file = pathlib.Path(folder) / str(number)
                succeeds, seconds = run(command_of(test), test.folder, 300, CENOTE_REACHED=str(file))
                reached = set(map(int, file.read_text().split())) if file.exists() else set()
                return seconds, test, reached, succeeds
            recorded = in_parallel(record, enumerate(tests), workers)
        self.broken = [test.name for _, test, _, succeeds in recorded if not succeeds]
        self.recorded = sorted(it[:3] for it in recorded if it[3])

    def play(self, number, patience=900, rule=None):
        begun = time.monotonic()
        reaching = [it for it in self.recorded if number in it[2]]
        for seconds, test, _ in sorted(reaching, key=lambda it: rule not in rules_of(it[1])):
            if rule not in rules_of(test) and time.monotonic() - begun > patience:
                break
            limit = 5 + 5 * seconds
            succeeds, _ = run(command_of(test), test.folder, limit, number)
            if not succeeds and self.again:
                succeeds, _ = run(command_of(test), test.folder, limit, number)
            if not succeeds:
                return Play(True, time.monotonic() - begun, test)
        return Play(False, time.monotonic() - begun)

@functools.cache
def named_rules():
    """The rules in the comments before functions, by the names of these."""
    rules = collections.defaultdict(set)
    for path in (*ROOT.glob("core/**/*.rs"), *ROOT.glob("s*/**/*.rs")):
        for comments, name in re.findall(r"((?:^ *//.*\n)+)(?:^ *#\[.*\n)*^ *(?:\w+ )*fn (\w+)", path.read_text(), re.M):
            rules[name] |= set(re.findall(r"\b[A-Z]+-\d+\b", comments))
    return rules

def rules_of(test):
    return named_rules()[test.name.split("::")[-1]]

def command_of(test):
    return [test.program, "--exact", test.name, "--test-threads=1", "-q"]
