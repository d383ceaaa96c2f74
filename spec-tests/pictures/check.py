"""Draws traces by `cenote replay --html` and looks at the pages in a browser: that they say what is
in the trace, without a word on the console; that zooming, moving, finding, hovering and keys do what
the page promises; that a million steps are drawn fast enough, and small enough.

    check.py CENOTE FOLDER    the program, and where screenshots go, for somebody to look at
"""

import pathlib
import re
import subprocess
import sys
import tempfile
import time

from webdriver import Browser

TRACES = {
    "small": ["--steps", "3000", "--connections", "5", "--tasks", "40", "--leak-every", "100",
              "--failure-every", "500"],
    "calm": ["--steps", "400", "--connections", "10", "--tasks", "8"],
    "wide": ["--steps", "300000", "--connections", "10000", "--tasks", "12000", "--establish-ms", "0"],
    "long": ["--steps", "1000000", "--leak-every", "200000"],
}
# What has to be seen of each, all of it at once.
COLOURS = {
    "small": ["--used", "--idle", "--pending", "--waiting", "--served", "--failed"],
    "calm": ["--used", "--idle", "--pending", "--waiting", "--served"],
    "wide": ["--used", "--idle", "--failed"],
    "long": ["--used", "--idle", "--waiting", "--served", "--failed"],
}
SECONDS_MAX, BYTES_MAX = 10, 30_000_000
# Of one picture, while one moves about in it.
FRAME_MAX_MS = 250


def main():
    cenote, folder = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch, Browser() as browser:
        for name, arguments in TRACES.items():
            page = draw(cenote, pathlib.Path(scratch), name, arguments)
            for scheme in ["light", "dark"]:
                browser.prefer(scheme)
                Page(browser, page, name).check(scheme, folder)
    print(f"screenshots are in {folder}")


def draw(cenote, scratch, name, arguments):
    trace, page = scratch / f"{name}.bson", scratch / f"{name}.html"
    subprocess.run([cenote, "record", trace, *arguments], check=True)
    start = time.monotonic()
    subprocess.run([cenote, "replay", trace, "--html", page], check=True, stdout=subprocess.DEVNULL)
    took, size = time.monotonic() - start, page.stat().st_size
    print(f"{name}: {arguments[1]} steps drawn in {took:.2f} s, {size / 1e6:.1f} MB")
    assert took < SECONDS_MAX, f"{took} s"
    assert size < BYTES_MAX, f"{size} bytes"
    return page


class Page:
    """One page in the browser."""

    def __init__(self, browser, path, name):
        self.browser, self.path, self.name = browser, path, name

    def check(self, scheme, folder):
        self.load(scheme)
        self.browser.screenshot(folder / f"{self.name}-{scheme}.png")
        if scheme == "light":
            # What does not depend on colours.
            self.zoom()
            self.move()
            self.help(folder / f"{self.name}-help.png")
            print(f"{self.name}: {self.frame():.0f} ms a picture while moving")
        self.find()
        self.browser.screenshot(folder / f"{self.name}-{scheme}-found.png")
        self.hover(folder / f"{self.name}-{scheme}-hover.png")
        assert not (said := self.browser.log()), said

    def load(self, scheme):
        self.browser.open("about:blank")
        self.browser.log()
        start = time.monotonic()
        self.browser.open(self.path.as_uri())
        while self.browser.run("return document.documentElement.dataset.ready") != "true":
            assert time.monotonic() - start < 30, "the page never becomes ready"
            time.sleep(0.05)
        if scheme == "light":
            print(f"{self.name}: open after {time.monotonic() - start:.2f} s")
        fetched = self.browser.run("return performance.getEntriesByType('resource').map(e => e.name)")
        assert not fetched, f"the page asks the network for {fetched}"
        ground = self.browser.run("return getComputedStyle(document.body).backgroundColor")
        light = sum(map(int, re.findall(r"\d+", ground)[:3])) > 384
        assert light == (scheme == "light"), f"{ground} where {scheme} is preferred"
        drawn = self.drawn()
        for colour in COLOURS[self.name]:
            assert drawn[colour] > 20, f"hardly anything is {colour}: {drawn}"

    def drawn(self):
        """How many pixels there are of each colour of the page."""
        return self.browser.run("""
            const canvas = document.getElementById("canvas"), counts = {}, names = {};
            const style = getComputedStyle(document.documentElement);
            for (const name of arguments[0]) {
                const hex = style.getPropertyValue(name).trim();
                names[parseInt(hex.slice(1), 16)] = name;
                counts[name] = 0;
            }
            const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
            for (let i = 0; i < data.length; i += 4) {
                const name = names[data[i] << 16 | data[i + 1] << 8 | data[i + 2]];
                if (name) counts[name]++;
            }
            return counts;""", ["--used", "--idle", "--pending", "--served", "--waiting", "--failed"])

    def status(self):
        return self.browser.run("return document.getElementById('status').textContent")

    def shown(self):
        """From when to when, in seconds."""
        said = self.status()
        found = re.match(r"([\d.]+) s to ([\d.]+) s ", said)
        assert found, said
        return float(found[1]), float(found[2])

    def zoom(self):
        whole = self.shown()
        self.browser.press("+")
        closer = self.shown()
        assert whole[0] <= closer[0] < closer[1] <= whole[1], (whole, closer)
        half = (closer[1] - closer[0]) / (whole[1] - whole[0])
        assert 0.4 < half < 0.6, (whole, closer)
        self.browser.wheel(640, 200, -200)
        wheeled = self.shown()
        assert wheeled[1] - wheeled[0] < closer[1] - closer[0], (closer, wheeled)
        self.browser.press("0")
        assert self.shown() == whole

    def move(self):
        self.browser.press("+", "+")
        before = self.shown()
        self.browser.press("right")
        after = self.shown()
        assert after[0] > before[0] and after[1] > before[1], (before, after)
        self.browser.drag((400, 300), (700, 300))
        dragged = self.shown()
        assert dragged[0] < after[0], (after, dragged)
        self.browser.press("home")
        start = self.shown()
        self.browser.press("end")
        assert self.shown()[0] > start[0]
        self.browser.press("0")

    def find(self):
        self.search("no such text")
        assert "was not found" in self.status(), self.status()
        for query, expected in [("c3", "connection c3"), ("w9", "w9 "), ("0.01s", "that time")]:
            self.search(query)
            assert self.status().startswith(expected), (query, self.status())
        self.browser.press("0", "n")
        assert re.match(r"step \d+: |no later failure", self.status()), self.status()
        self.search("c3")

    def search(self, text):
        self.browser.press("/")
        self.browser.run("document.getElementById('query').select()")
        self.browser.press(*text, "enter")
        # Whatever is pressed next is for the page again.
        self.browser.run("document.getElementById('main').focus()")

    def hover(self, screenshot):
        """Somewhere there has to be something of each kind."""
        self.browser.press("escape", "0")
        left, top, width, height = self.browser.run(
            "const b = document.getElementById('main').getBoundingClientRect();"
            "return [b.left, b.top, b.width, b.height]")
        wanted = {r"c\d+ in use by w\d+ for ": None, r"\d+ requests? waits?": None}
        for row in range(30, int(height), 7):
            for column in (0.2, 0.5, 0.83):
                at = int(left + width * column), int(top + row)
                self.browser.move(*at)
                said = self.browser.run("const t = document.getElementById('tip');"
                                        "return t.hidden ? '' : t.textContent")
                for pattern in wanted:
                    if wanted[pattern] is None and re.search(pattern, said):
                        wanted[pattern] = said
            if all(wanted.values()):
                break
        assert all(wanted.values()), wanted
        self.browser.screenshot(screenshot)

    def help(self, screenshot):
        opened = "return document.getElementById('help').open"
        self.browser.press("?")
        assert self.browser.run(opened)
        self.browser.screenshot(screenshot)
        self.browser.press("escape")
        assert not self.browser.run(opened)

    def frame(self):
        """Milliseconds from a key to the picture, in the middle of 20."""
        took = sorted(self.browser.wait_for("""
            const done = arguments[0], took = [];
            const press = (key) => document.dispatchEvent(new KeyboardEvent("keydown", { key }));
            press("+");
            (function once() {
                if (took.length === 20) return done(took);
                const start = performance.now();
                press(took.length % 2 ? "ArrowLeft" : "ArrowRight");
                requestAnimationFrame(() => { took.push(performance.now() - start); once(); });
            })();"""))
        assert took[10] < FRAME_MAX_MS, took
        return took[10]


main()
