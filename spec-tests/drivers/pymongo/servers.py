"""The servers of the tests: `cenote endpoint`, and SecantusDB, each a process of its own."""

import contextlib
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

CENOTE = "target/release/cenote"


@contextlib.contextmanager
def endpoint(*options: str) -> Iterator[str]:
    """A running endpoint: its connection string."""
    command = [CENOTE, "endpoint", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        try:
            assert server.stdout is not None
            uri = server.stdout.readline().strip()
            assert uri.startswith("mongodb://"), f"the first line is {uri!r}"
            yield uri
        finally:
            server.terminate()


@contextlib.contextmanager
def secantus(log: Path) -> Iterator[str]:
    """A running SecantusDB, the primary of a replica set: its connection string."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    options = ["--storage-path", ":memory:", "--cache-size", "256M", "--enable-test-commands"]
    program = str(Path(sys.executable).with_name("secantusd-py"))
    command = [program, "--host", "127.0.0.1", "--port", port, *options]
    with log.open("w") as output, subprocess.Popen(command, stdout=output, stderr=output) as server:
        try:
            end = time.monotonic() + 60
            while "listening" not in log.read_text():
                assert server.poll() is None and time.monotonic() < end, log.read_text()
                time.sleep(0.1)
            yield f"mongodb://127.0.0.1:{port}/"
        finally:
            server.terminate()
