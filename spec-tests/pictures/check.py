"""Draws traces by `cenote draw` and `cenote run --html`, and steers the pages in a browser by mouse,
keys and fingers: what docs/traces.md promises of the picture is tried here.

    check.py CENOTE FOLDER [PART…]    the program, the folder for screenshots, and only these modules, such
                                      as steering
"""

import pathlib
import subprocess
import sys
import tempfile
import time

import beside
import cases
import faults
import looks
import readme
import servers
import speed
import steering
import touch
from webdriver import Browser

SECONDS_MAX, BYTES_MAX = 10, 30_000_000


class Drawer:
    """Records and draws traces."""

    def __init__(self, cenote, folder):
        self.cenote, self.folder = cenote, folder

    def run(self, *arguments):
        return subprocess.run([self.cenote, *arguments], check=True, capture_output=True, text=True, timeout=300).stdout

    def record(self, name, *arguments):
        trace = self.folder / f"{name}.bson"
        self.run("record", trace, *arguments)
        return trace

    def draw(self, name, *arguments):
        """A page, whose trace is beside it."""
        trace, page = self.record(name, *arguments), self.folder / f"{name}.html"
        start = time.monotonic()
        self.run("draw", trace, "--html", page)
        took, size = time.monotonic() - start, page.stat().st_size
        print(f"{name}: drawn in {took:.2f} s, {size / 1e6:.1f} MB")
        assert took < SECONDS_MAX, f"{took} s"
        assert size < BYTES_MAX, f"{size} bytes"
        return page


def main():
    cenote, screenshots = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
    screenshots.mkdir(parents=True, exist_ok=True)
    parts = [readme, looks, steering, cases, touch, beside, servers, faults, speed]
    wanted = sys.argv[3:]
    with tempfile.TemporaryDirectory() as scratch, Browser() as browser:
        drawer = Drawer(cenote, pathlib.Path(scratch))
        for part in parts:
            if not wanted or part.__name__ in wanted:
                part.check(browser, drawer, screenshots)
                print(f"{part.__name__}: ok")
    print(f"screenshots are in {screenshots}")


main()
