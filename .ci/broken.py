"""What `.ci/mutants` and `.ci/mutations` share: a copy of the workspace that is broken on purpose, and
tables in pages that tell what came of it."""
import pathlib, subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
PARTS = ["core", "shell-tokio", "shell-mio", "spec-tests", "fuzz", "docs", "Cargo.toml", "Cargo.lock",
         "README.md", "CHANGELOG.md", "clippy.toml"]

def copy_workspace(copy, but=()):
    """Copies what differs, so that cargo builds no more than it must, and leaves alone what is in one of
    these folders. What is built from the copy needs a folder of its own: cargo tells packages by where
    they are within their workspace, and would take it for what is built from the original."""
    but = tuple(but)
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *PARTS]
    listed = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    listed = set(listed.stdout.splitlines())
    for part in PARTS:
        for path in (copy / part).rglob("*"):
            if path.is_file() and str(path.relative_to(copy)) not in listed:
                path.unlink()
    for name in sorted(listed):
        if (ROOT / name).exists() and not name.startswith(but):
            place(copy / name, (ROOT / name).read_bytes())

def place(path, content):
    """Writes a file unless it is there as it should be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_bytes() != content:
        path.write_bytes(content)

def write_table(page, name, rows):
    """Puts a table, its head among the rows, between two comments with that name."""
    before, rest = page.read_text().split(f"<!-- {name} from here -->\n")
    after = rest.split(f"<!-- {name} to here -->\n")[1]
    table = "\n".join(rows) + "\n"
    page.write_text(f"{before}<!-- {name} from here -->\n{table}<!-- {name} to here -->\n{after}")
