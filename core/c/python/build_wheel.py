"""Builds the wheel: the package, and the C library as cargo builds it. Builds the sdist: the sources of both. A build backend
(PEP 517) without dependencies."""

import hashlib
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
from base64 import urlsafe_b64encode
from gzip import GzipFile
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

HERE = Path(__file__).resolve().parent
WORKSPACE = HERE.parents[2]
SOURCES = {".py", ".typed"}
CRATES = ("core", "core/c")
PYTHON = HERE.relative_to(WORKSPACE).as_posix()
FILES = {"win32": ("cenote_c.dll", "libcenote.dll"), "darwin": ("libcenote_c.dylib", "libcenote.dylib")}


def library() -> tuple[str, bytes]:
    """Builds the library: its name in the package, and its bytes."""
    arguments = ["--release", "--package", "cenote-c", "--lib", "--crate-type", "cdylib", "--locked"]
    subprocess.run(["cargo", "rustc", *arguments], cwd=WORKSPACE, check=True)
    built, name = FILES.get(sys.platform, ("libcenote_c.so", "libcenote.so"))
    target = Path(os.environ.get("CARGO_TARGET_DIR", "target"))
    return name, (WORKSPACE / target / "release" / built).read_bytes()


def metadata() -> tuple[str, str, str]:
    """Name, version, and the file METADATA."""
    project = tomllib.loads((HERE / "pyproject.toml").read_text())["project"]
    cargo = tomllib.loads((WORKSPACE / "Cargo.toml").read_text())
    if project["version"] != cargo["workspace"]["package"]["version"]:
        raise ValueError(f"core/c/python/pyproject.toml has version {project['version']}, the workspace another one")
    lines = [
        "Metadata-Version: 2.4",
        f"Name: {project['name']}",
        f"Version: {project['version']}",
        f"Summary: {project['description']}",
        f"Requires-Python: {project['requires-python']}",
        f"License-Expression: {project['license']}",
        "License-File: LICENSE-MIT",
        "License-File: LICENSE-APACHE",
        "Description-Content-Type: text/markdown",
    ]
    for extra, requirements in project["optional-dependencies"].items():
        lines.append(f"Provides-Extra: {extra}")
        lines += [f'Requires-Dist: {requirement}; extra == "{extra}"' for requirement in requirements]
    return project["name"], project["version"], "\n".join(lines) + "\n\n" + (HERE / project["readme"]).read_text()


def build_wheel(wheel_directory: str, config_settings: object = None, metadata_directory: object = None) -> str:
    name, version, described = metadata()
    library_name, library_bytes = library()
    tag = "py3-none-" + re.sub(r"\W", "_", sysconfig.get_platform())
    info = f"{name}-{version}.dist-info"
    files = {f"{name}/{path.name}": path.read_bytes() for path in sorted((HERE / name).iterdir()) if path.suffix in SOURCES}
    files[f"{name}/{library_name}"] = library_bytes
    for licence in ("LICENSE-MIT", "LICENSE-APACHE"):
        files[f"{info}/licenses/{licence}"] = (WORKSPACE / licence).read_bytes()
    files[f"{info}/METADATA"] = described.encode()
    wheel = f"Wheel-Version: 1.0\nGenerator: cenote\nRoot-Is-Purelib: false\nTag: {tag}\n"
    files[f"{info}/WHEEL"] = wheel.encode()
    record = ""
    for path, content in files.items():
        digest = urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        record += f"{path},sha256={digest},{len(content)}\n"
    files[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\n").encode()
    file = f"{name}-{version}-{tag}.whl"
    with ZipFile(Path(wheel_directory) / file, "w", ZIP_DEFLATED) as archive:
        for path, content in files.items():
            # The same date in each build, so that the same sources make the same wheel.
            entry = ZipInfo(path, (1980, 1, 1, 0, 0, 0))
            entry.compress_type, entry.external_attr = ZIP_DEFLATED, 0o644 << 16
            archive.writestr(entry, content)
    return file


def trimmed(manifest: str) -> str:
    """A manifest without the other crates of the workspace, without tests and examples."""
    members = ", ".join(f'"{crate}"' for crate in CRATES)
    manifest = re.sub(r"^members = \[.*?^\]", f"members = [{members}]", manifest, flags=re.M | re.S)
    unwanted = r"dev-dependencies|test|example|profile\.\w+\.package\.cenote(?!-core)"
    return re.sub(rf"^\[+({unwanted})\b.*\n((?!\[).*\n)*", "", manifest, flags=re.M)


def sources() -> dict[str, bytes]:
    """What the wheel is built from, by its path in the workspace."""
    patterns = ["LICENSE-*", "Cargo.*", f"{PYTHON}/README.md", f"{PYTHON}/pyproject.toml", f"{PYTHON}/build_wheel.py"]
    patterns += [f"{PYTHON}/cenote/*{suffix}" for suffix in sorted(SOURCES)]
    patterns += [f"{crate}/{it}" for crate in CRATES for it in ("Cargo.toml", "README.md", "src/**/*.rs")]
    paths = [path for pattern in patterns for path in sorted(WORKSPACE.glob(pattern))]
    files = {path.relative_to(WORKSPACE).as_posix(): path.read_bytes() for path in paths}
    files |= {path: trimmed(it.decode()).encode() for path, it in files.items() if path.endswith("Cargo.toml")}
    with TemporaryDirectory() as folder:
        for path, content in files.items():
            file = Path(folder, path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        # Only takes from the lock file what the other crates need.
        subprocess.run(["cargo", "update", "--quiet", "--workspace"], cwd=folder, check=True)
        files["Cargo.lock"] = Path(folder, "Cargo.lock").read_bytes()
    return files


def build_sdist(sdist_directory: str, config_settings: object = None) -> str:
    name, version, described = metadata()
    backend = f'[build-system]\nrequires = []\nbuild-backend = "build_wheel"\nbackend-path = ["{PYTHON}"]\n'
    files = sources() | {"pyproject.toml": backend.encode(), "PKG-INFO": described.encode()}
    file = f"{name}-{version}.tar.gz"
    # Without dates, so that the same sources make the same sdist.
    with GzipFile(Path(sdist_directory) / file, "wb", mtime=0) as zipped, tarfile.open(mode="w", fileobj=zipped) as archive:
        for path, content in files.items():
            entry = tarfile.TarInfo(f"{name}-{version}/{path}")
            entry.size = len(content)
            archive.addfile(entry, BytesIO(content))
    return file
