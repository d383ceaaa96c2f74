"""How pages look: everything is drawn, in light and dark, with text that can be read, marks that can be told
apart without colours, labels beside what they name, and nothing from the network."""

import re

from page import Page

TRACES = {
    "small": ["--steps", "3000", "--connections", "5", "--tasks", "40", "--leak-every", "100",
              "--failure-every", "500"],
    "calm": ["--steps", "400", "--connections", "10", "--tasks", "8"],
    "wide": ["--steps", "300000", "--connections", "10000", "--tasks", "12000", "--establish-ms", "0"],
}
# Seen of each, all at once.
COLOURS = {
    "small": ["--use1", "--use2", "--use3", "--use4", "--idle", "--pending", "--waiting", "--served", "--failed"],
    "calm": ["--use1", "--use2", "--use3", "--idle", "--pending", "--waiting", "--served"],
    "wide": ["--use1", "--use2", "--use3", "--idle", "--failed"],
}
CONTRAST_MIN = 4.5

# Notes each text that is drawn, with its colour and the most frequent colour under it.
WATCH = """
    window.drawn = []; window.dashed = [];
    const canvas2d = CanvasRenderingContext2D.prototype, fillText = canvas2d.fillText, lineTo = canvas2d.lineTo;
    canvas2d.fillText = function (text, x, y) {
        const scale = this.getTransform().a, half = this.measureText(text).width / 2;
        const middle = this.textAlign === "right" ? x - half : this.textAlign === "left" ? x + half : x;
        const left = Math.round((middle - half) * scale), top = Math.round((y - 5) * scale);
        // What is outside of the canvas is not seen.
        if (y * scale + 5 > this.canvas.height) return;
        const wide = Math.max(1, Math.round(2 * half * scale));
        const { data } = this.getImageData(left, top, wide, Math.round(10 * scale));
        const counts = new Map();
        for (let i = 0; i < data.length; i += 4) {
            const key = data[i] << 16 | data[i + 1] << 8 | data[i + 2];
            counts.set(key, (counts.get(key) ?? 0) + 1);
        }
        const [under] = [...counts].sort((a, b) => b[1] - a[1])[0];
        window.drawn.push({ text, x, y, ink: this.fillStyle, under: "#" + under.toString(16).padStart(6, "0") });
        return fillText.call(this, text, x, y);
    };
    canvas2d.lineTo = function (x, y) {
        if (this.getLineDash().length) window.dashed.push(y);
        return lineTo.call(this, x, y);
    };
"""


def check(browser, drawer, screenshots):
    for name, arguments in TRACES.items():
        page = Page(browser, drawer.draw(name, *arguments))
        for scheme in ["light", "dark"]:
            browser.prefer(scheme)
            watch = browser.before_pages(WATCH)
            page.load()
            browser.not_before_pages(watch)
            browser.screenshot(screenshots / f"{name}-{scheme}.png")
            colours(page, name, scheme)
            contrast(page, f"{name}, {scheme}")
            shapes(page)
            page.quiet()
        limits(page)
    browser.prefer("light")
    zoomed_names(browser, drawer, screenshots)
    offline(page)


def colours(page, name, scheme):
    ground = page.browser.run("return getComputedStyle(document.body).backgroundColor")
    light = sum(map(int, re.findall(r"\d+", ground)[:3])) > 384
    assert light == (scheme == "light"), f"{ground} where {scheme} is preferred"
    drawn = page.pixels(COLOURS[name])
    for colour, count in drawn.items():
        assert count > 20, f"{name}: hardly anything is {colour}: {drawn}"


def contrast(page, where):
    """Of each text in the timeline and around it, with what is under it."""
    texts = page.browser.run("""
        const two = (part) => Number(part).toString(16).padStart(2, "0");
        const hex = (colour) => "#" + colour.match(/[\\d.]+/g).slice(0, 3).map(two).join("");
        const under = (element) => {
            const colour = getComputedStyle(element).backgroundColor;
            return colour === "rgba(0, 0, 0, 0)" ? under(element.parentElement) : hex(colour);
        };
        const texts = window.drawn.splice(0), walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
        while (walker.nextNode()) {
            const element = walker.currentNode.parentElement, text = walker.currentNode.textContent.trim();
            if (!text || !element.checkVisibility()) continue;
            texts.push({ text, ink: hex(getComputedStyle(element).color), under: under(element) });
        }
        return texts;""")
    assert len(texts) > 40, texts
    for one in texts:
        ratio = ratio_of(one["ink"], one["under"])
        assert ratio >= CONTRAST_MIN, f"{where}: {ratio:.2f} : 1 of {one}"


def ratio_of(one, other):
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(colour):
    parts = [int(colour[at:at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def shapes(page):
    """No two kinds of marks have the same outline."""
    shapes = page.browser.run("""
        return [...document.querySelectorAll("#legend canvas")].map((canvas) => {
            const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
            return data.filter((_, i) => i % 4 === 3).map((alpha) => alpha > 127 ? 1 : 0).join("");
        });""")
    assert shapes and all("1" in shape for shape in shapes), shapes
    assert len(set(shapes)) == len(shapes), shapes


def limits(page):
    """The largest number of the axis stands beside the dashed line that it names."""
    watch = page.browser.before_pages(WATCH)
    page.load()
    page.browser.not_before_pages(watch)
    drawn, dashed = page.browser.run("return [window.drawn, window.dashed]")
    most = page.browser.run("return Math.min(...arguments[0])", dashed)
    beside = [one for one in drawn if one["text"].replace(",", "").isdigit() and abs(one["y"] - most) <= 2]
    assert beside, (most, drawn)


def zoomed_names(browser, drawer, screenshots):
    """Names in bars can be read in each colour of bars."""
    watch = browser.before_pages(WATCH)
    page = Page(browser, drawer.draw("names", *TRACES["small"]))
    for scheme in ["light", "dark"]:
        browser.prefer(scheme)
        page.load("#at=0.012&span=0.03")
        contrast(page, f"names, {scheme}")
        page.load("#at=0.2&span=0.05")
        names = browser.run("return window.drawn.filter(({ text }) => /^c\\d+( w\\d+)?$/.test(text))")
        assert len({one["under"] for one in names}) >= 2, names
        contrast(page, f"names, {scheme}")
        browser.screenshot(screenshots / f"names-{scheme}.png")
    browser.not_before_pages(watch)
    browser.prefer("light")


def offline(page):
    fetched = page.browser.run("""
        const names = performance.getEntriesByType("resource").map((entry) => entry.name);
        return names.filter((name) => !name.startsWith("about:"));""")
    assert not fetched, f"the page asks the network for {fetched}"
