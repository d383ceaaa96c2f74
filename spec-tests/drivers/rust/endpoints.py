"""The mock server."""

import contextlib
import subprocess

CENOTE = "target/release/cenote"


@contextlib.contextmanager
def endpoint(*arguments):
    """A running endpoint: its connection string."""
    server = subprocess.Popen(
        [CENOTE, "endpoint", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        uri = server.stdout.readline().strip()
        assert uri.startswith("mongodb://"), f"the first line is {uri!r}"
        yield uri
    finally:
        server.terminate()
        server.wait()
