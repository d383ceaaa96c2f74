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
    counts(browser, drawer, screenshots)
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


def counts(browser, drawer, screenshots):
    """Connections are stacked in the colours of the legend: the mean of each pixel is filled, its maximum is a line."""
    watch = browser.before_pages(WATCH)
    page = Page(browser, drawer.draw("stacked", "--case", "too-small"))
    page.load()
    browser.not_before_pages(watch)
    labels = browser.run("return window.drawn.map(({ text, y }) => [text, y])")
    bottom = next(int(y) for text, y in labels if text == "0")
    top = next(int(y) for text, y in labels if text == "10")
    idle, used, pending = map(page.colour, ["--idle", "--used", "--pending"])

    # From 03:07:12 on, all are in use.
    column = page.column(0.9, top + 1, bottom - 1)
    assert idle not in column and column.count(used) > 0.9 * len(column), column
    # Before, the area is as high as the mean that the panel says, and the line is above it.
    columns = [page.column(share / 400, top, bottom) for share in range(40, 300)]
    filled = [column[::-1].index(idle) / len(column) if idle in column else 1 for column in columns]
    left, _, width, _ = page.box()
    start, end = (int(left + 84 + share * (width - 96)) for share in (0.1, 0.75))
    browser.drag_with("shift", (start, bottom + 100), (end, bottom + 100))
    told = float(re.search(r"in use\n([\d.]+) on average, 10 at most", page.story())[1])
    mean = 10 * sum(filled) / len(filled)
    assert told < 8 and abs(mean - told) < 0.3, (mean, told)
    nearer = lambda one: distance(one, used) < distance(one, idle)
    lines = [column for column in columns if idle in column
             and any(map(nearer, column[2:len(column) - column[::-1].index(idle) - 1]))]
    assert len(lines) > len(columns) / 2, f"{len(lines)} of {len(columns)} columns have a line above the area"
    browser.screenshot(screenshots / "stacked.png")

    # Those being established are the lowest.
    page = Page(browser, drawer.draw("establishing", "--case", "overloaded"))
    page.load("#at=12.065&span=0.02")
    column = page.column(0.3, top + 1, bottom - 1)
    assert column.count(pending) > 3 and column.index(used) < column.index(pending), column


def distance(one, other):
    return sum(abs(int(one[at:at + 2], 16) - int(other[at:at + 2], 16)) for at in (1, 3, 5))


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
