"""A page of `cenote draw` in the browser: what it says and shows."""

import re
import time


def eventually(holds, told):
    """Waits until it holds; or says what was `told` instead."""
    for _ in range(200):
        if holds():
            return
        time.sleep(0.05)
    raise AssertionError(told())


class Page:
    """One page."""

    def __init__(self, browser, path):
        self.browser, self.path = browser, path

    def load(self, hash=""):
        """Opens it anew; returns how many seconds that took."""
        self.browser.open("about:blank")
        self.browser.log()
        start = time.monotonic()
        self.browser.open(self.path.as_uri() + hash)
        while self.browser.run("return document.documentElement.dataset.ready") != "true":
            assert time.monotonic() - start < 30, f"the page never becomes ready: {self.browser.log()}"
            time.sleep(0.02)
        return time.monotonic() - start

    def quiet(self):
        """There is nothing on the console, but for advice about this test's own looks at the canvas."""
        said = [line for line in self.browser.log() if "willReadFrequently" not in line]
        assert not said, said

    def text(self, selector):
        return self.browser.run("return document.querySelector(arguments[0]).innerText", selector)

    def status(self):
        return self.text("#status")

    def story(self):
        """What the panel says; empty where it is hidden."""
        return self.browser.run(
            "return document.getElementById('panel').hidden ? '' : document.getElementById('story').innerText")

    def heading(self):
        return self.story().partition("\n")[0]

    def focus(self):
        return self.browser.run("return document.activeElement.id")

    def follow(self, text, within="#story"):
        """Clicks a link or a button with this text."""
        place = self.browser.run("""
            const all = [...document.querySelectorAll(arguments[0] + " button")];
            const one = all.find((button) => button.textContent.includes(arguments[1]));
            if (!one) return null;
            one.scrollIntoView({ block: "nearest" });
            const box = one.getClientRects()[0];
            return [box.left + Math.min(box.width / 2, 20), box.top + box.height / 2];""", within, text)
        assert place, f"no “{text}” in {within}: {self.text(within)}"
        self.browser.click(*map(int, place))

    def shown(self):
        """From when to when, in seconds, by the link to it."""
        self.browser.press("l")
        found = re.match(r"#at=([\d.]+)&span=([\d.e+-]+)", self.browser.run("return location.hash"))
        assert found, self.status()
        middle, length = float(found[1]), float(found[2])
        return middle - length / 2, middle + length / 2

    def length(self):
        start, end = self.shown()
        return end - start

    def box(self):
        """Of the timeline: left, top, width, height."""
        return self.browser.run("const b = document.getElementById('main').getBoundingClientRect();"
                                "return [b.left, b.top, b.width, b.height]")

    def search(self, text):
        self.browser.press("/")
        self.browser.press(*text, "enter")

    def tip(self):
        return self.browser.run("const t = document.getElementById('tip'); return t.hidden ? '' : t.textContent")

    def point_at(self, pattern, columns=(0.2, 0.5, 0.83), step=7):
        """A place where the tip says this, searched from top to bottom."""
        left, top, width, height = self.box()
        for row in range(8, int(height), step):
            for column in columns:
                at = int(left + width * column), int(top + row)
                self.browser.move(*at)
                if re.search(pattern, self.tip()):
                    return at
        raise AssertionError(f"nowhere: {pattern}")

    def column(self, share, top, bottom):
        """The colours of the timeline's pixels, from top to bottom, at a share of its width."""
        return self.browser.run("""
            const canvas = document.getElementById("canvas"), [share, top, bottom] = arguments;
            const x = Math.round(84 + share * (canvas.width - 96));
            const { data } = canvas.getContext("2d").getImageData(x, top, 1, bottom - top);
            const two = (part) => part.toString(16).padStart(2, "0");
            return Array.from({ length: bottom - top }, (_, y) => "#" + [...data.slice(4 * y, 4 * y + 3)].map(two).join(""));
            """, share, top, bottom)

    def colour(self, name):
        """A colour of the style sheet."""
        return self.browser.run(
            "return getComputedStyle(document.documentElement).getPropertyValue(arguments[0]).trim()", name)

    def pixels(self, colours):
        """How many pixels of the timeline have each of these colours, which the style sheet names."""
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
            return counts;""", colours)
