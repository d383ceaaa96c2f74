"""Mouse and keys: pinning, finding, walking, measuring, links, zooming and moving."""

import re

from looks import TRACES
from page import Page, eventually


def check(browser, drawer, screenshots):
    page = Page(browser, drawer.draw("steered", *TRACES["small"]))
    summary = drawer.run("explain", drawer.folder / "steered.bson")
    page.requests = re.search(r"^requests +([\d,]+):", summary, re.MULTILINE)[1]
    browser.prefer("light")
    for part in [zoom, move, hover, pin, mark, escape, find, zoom_around, walk, legend, measure, links, axis, keys]:
        page.load()
        part(page, screenshots)
        page.quiet()


def zoom(page, _):
    whole = page.shown()
    page.browser.press("+")
    closer = page.shown()
    assert whole[0] <= closer[0] < closer[1] <= whole[1], (whole, closer)
    half = (closer[1] - closer[0]) / (whole[1] - whole[0])
    assert 0.4 < half < 0.6, (whole, closer)
    left, top, width, _ = page.box()
    page.browser.wheel(int(left + width / 2), int(top + 60), -200)
    assert page.length() < closer[1] - closer[0]
    page.browser.press("0")
    assert abs(page.length() - (whole[1] - whole[0])) < 1e-3


def move(page, _):
    page.browser.press("+", "+")
    before = page.shown()
    page.browser.press("right")
    after = page.shown()
    assert after[0] > before[0] and after[1] > before[1], (before, after)
    left, top, *_ = page.box()
    page.browser.drag((int(left) + 200, int(top) + 150), (int(left) + 500, int(top) + 150))
    dragged = page.shown()
    assert dragged[0] < after[0], (after, dragged)
    assert page.heading() == "Overview", "a drag pins nothing"
    page.browser.press("home")
    start = page.shown()
    page.browser.press("end")
    assert page.shown()[0] > start[0]


def hover(page, screenshots):
    page.point_at(r"\d+ requests? waits?")
    page.point_at(r"w\d+ waited .*\nfrom .*\nin the way: ")
    page.point_at(r"c\d+ in use by w\d+ for ")
    page.browser.screenshot(screenshots / "hover.png")


def pin(page, screenshots):
    """A click pins a wait, a use, a connection; links lead on."""
    at = page.point_at(r"w\d+ waited ")
    name = re.match(r"w\d+", page.tip())[0]
    page.browser.click(*at)
    assert page.heading().startswith(f"{name} waited "), page.heading()
    story = page.story()
    for told in ["in the way", "ahead of it", "in use when it came", f"--waiter {name[1:]}"]:
        assert told in story, story
    page.browser.screenshot(screenshots / "pinned-wait.png")

    at = page.point_at(r"c\d+ in use by w\d+ for ")
    connection, holder = re.match(r"(c\d+) in use by (w\d+)", page.tip()).groups()
    page.browser.click(*at)
    assert page.heading().startswith(f"{connection} in use by {holder} for "), page.heading()
    assert "took longer\nthan " in page.story() and "its wait\n" in page.story(), page.story()
    page.follow(f"connection {connection}")
    assert page.heading().startswith(f"connection {connection}, for "), page.heading()
    for told in ["closed\n", "established\n", "longest uses", "slot"]:
        assert told in page.story(), page.story()
    # A place without anything: the state at that time.
    left, top, width, _ = page.box()
    page.browser.click(int(left + width / 2), int(top + 90))
    assert "in use then" in page.story(), page.story()


def mark(page, _):
    """A click on a mark says what it is, and leads to the request or the connection."""
    page.browser.press("n")
    assert "check-out failed" in page.story() or "what\n" in page.story(), page.story()
    page.search("check-out failed")
    assert page.heading().partition(": ")[2].startswith("check-out failed: "), page.heading()
    request = re.match(r"w\d+", page.heading())[0]
    page.follow(f"{request} waited", "#story")
    assert page.heading().startswith(f"{request} waited "), page.heading()
    # The same by the mouse, where it is drawn.
    page.search("reported: held")
    name = page.heading()
    left, top, width, _ = page.box()
    page.browser.press("escape")
    page.browser.click(int(left + 84 + (width - 96) / 2), int(top + 31))
    assert page.heading() == name, (page.heading(), name)


def escape(page, _):
    page.browser.click(*page.point_at(r"w\d+ waited "))
    assert " waited " in page.heading()
    page.browser.press("escape")
    assert page.heading() == "Overview"
    page.browser.press("i")
    assert page.story() == ""
    page.browser.press("i")
    assert page.heading() == "Overview"
    # Escape leaves the box, and keys are keys again.
    page.browser.press("/", "n", "x")
    assert page.focus() == "query"
    page.browser.press("escape")
    assert page.focus() == "main"
    whole = page.length()
    page.browser.press("+")
    assert page.length() < whole * 0.6


def find(page, _):
    whole = page.length()
    page.search("no such text")
    assert "was not found" in page.status(), page.status()
    assert page.focus() == "main", "the focus leaves the box"
    page.search("c3")
    assert page.heading().startswith("connection c3, "), page.heading()
    page.browser.press("0")
    slowest = longest(page)
    page.search(slowest)
    assert page.heading().startswith(f"{slowest} waited "), page.heading()
    # It zooms to what it found, and frames it in its row.
    waited = milliseconds(re.search(r"waited ([\d.]+ [mµ]?s)", page.heading())[1]) / 1e3
    assert waited * 2 < page.length() < waited * 5 < whole, (waited, page.length())
    framed(page)
    page.browser.press("0")
    page.search(slowest[1:])
    assert page.heading().startswith(f"{slowest} waited "), "a bare number is a request"
    page.search(slowest)
    assert re.match(rf"c\d+ in use by {slowest} ", page.heading()) or page.heading().startswith(slowest), page.heading()
    page.browser.press("0")
    page.search("w1")
    assert "in the way\nthe pool had never been ready" in page.story(), page.story()
    page.search("0.05s")
    assert page.heading().startswith("0.050000 s"), page.heading()
    page.browser.press("0")
    page.search("longest")
    assert page.heading().startswith(f"{slowest} waited "), page.heading()
    # The number in the summary leads there, too.
    page.browser.press("0", "escape")
    page.follow("at the longest", "#verdict")
    assert page.heading().startswith(f"{slowest} waited "), page.heading()


def longest(page):
    """The first in the list of the longest waits, whose heading is as long as the maximum."""
    page.browser.press("escape")
    found = re.search(r"longest waits\n(w\d+) ([\d.]+ [mµ]?s)", page.story())
    assert found and re.search(rf"wait of a served request.*|{found[2]}", page.story()), page.story()
    return found[1]


def framed(page):
    """What is pinned is framed where it is drawn, in its row only."""
    rows = page.browser.run("""
        const canvas = document.getElementById("canvas"), style = getComputedStyle(document.documentElement);
        const colour = parseInt(style.getPropertyValue("--found").trim().slice(1), 16);
        const { data, width, height } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        const rows = [];
        for (let y = 0; y < height; y++) for (let x = 0; x < width; x++) {
            const i = 4 * (y * width + x);
            if ((data[i] << 16 | data[i + 1] << 8 | data[i + 2]) === colour) { rows.push(y); break; }
        }
        return rows;""")
    assert rows and max(rows) - min(rows) < 60, rows


def zoom_around(page, _):
    """After a find, + zooms around what was found, also where that is not in the middle."""
    page.search(longest(page))
    found = page.browser.run("return location.hash") or page.shown()
    page.browser.press("-", "-", "-", "right")
    for _ in range(6):
        page.browser.press("+")
    start, end = page.shown()
    page.browser.press("z")
    middle = sum(page.shown()) / 2
    assert start <= middle <= end, (start, middle, end, found)


def walk(page, _):
    """n goes through failures in the order of time, N back."""
    seen = []
    for _ in range(12):
        page.browser.press("n")
        assert re.search(r"failed|Failed|errored|held|leaked|Clear|no later failure", page.status()), page.status()
        seen.append(page.status())
    assert len(set(seen)) > 8, seen
    page.browser.press("N")
    assert page.status() == seen[-2], (page.status(), seen[-2])
    page.browser.press("p")
    assert page.status() == seen[-3], (page.status(), seen[-3])
    page.browser.press("0", "escape", *["n"] * 300)
    page.browser.press("escape", "end", "escape", "0")


def legend(page, _):
    """A kind in the legend leads to the next mark of that kind, and nothing else."""
    page.follow("held for long", "#legend")
    first = page.heading()
    page.follow("held for long", "#legend")
    second = page.heading()
    assert first != second and all("held for" in one for one in [first, second]), (first, second)


def measure(page, screenshots):
    """Shift + drag, and s: counts and percentiles, each of which leads to an example."""
    left, top, width, _ = page.box()
    page.browser.drag_with("shift", (int(left + 200), int(top + 100)), (int(left + 500), int(top + 100)))
    start, end = page.shown()
    assert re.match(r"[\d.]+ m?s from ", page.heading()), page.heading()
    part = milliseconds(re.match(r"[\d.]+ m?s", page.heading())[0]) / 1e3
    assert abs(part / (end - start) - 300 / (width - 96)) < 0.02, (part, start, end)
    for told in ["requests\n", "served\n", "failed\n", "in use\n", "p50", "p99", "longest waits", "connections\n"]:
        assert told in page.story(), page.story()
    page.browser.screenshot(screenshots / "range.png")
    page.browser.press("enter")
    assert abs(page.length() / part - 1) < 0.02, (page.length(), part)
    page.browser.press("0", "s")
    counted = re.search(r"requests\n([\d,]*\d)", page.story())[1]
    assert counted == page.requests, (counted, page.requests)
    # A percentile leads to a use of that length.
    row = re.search(r"use \([\d,]+\)\s+([^\n]+)", page.story())[1]
    highest = re.findall(r"[\d.]+ [mµ]?s", row)[-1]
    page.follow(highest)
    assert f"for {highest}" in page.heading() or f"waited {highest}" in page.heading(), (highest, page.heading())


def milliseconds(text):
    number, unit = text.split()
    return float(number) * {"s": 1e3, "ms": 1, "µs": 1e-3}[unit]


def links(page, _):
    """#at= and #find= when the page opens, and later; l copies a link that leads back."""
    page.load("#at=0.2&span=0.02")
    start, end = page.shown()
    assert abs(start - 0.19) < 1e-3 and abs(end - 0.21) < 1e-3, (start, end)
    page.browser.run("location.hash = '#at=0.4&span=0.02'")
    eventually(lambda: page.heading() == "0.400000 s", page.heading)
    start, end = page.shown()
    assert abs(start - 0.39) < 1e-3 and abs(end - 0.41) < 1e-3, (start, end)
    page.browser.run("location.hash = '#find=c2'")
    eventually(lambda: page.heading().startswith("connection c2, "), page.heading)
    before = page.shown()
    page.browser.press("l")
    eventually(lambda: page.status() == "the link is copied", page.status)
    # What was copied comes back by Ctrl + V.
    page.browser.press("/")
    page.browser.press_with("control", "v")
    copied = page.browser.run("return document.getElementById('query').value")
    assert copied.startswith(page.path.as_uri() + "#at=") and copied.endswith("&find=c2"), copied
    page.load(copied[copied.index("#"):])
    assert page.heading().startswith("connection c2, ")
    assert all(abs(a - b) < 1e-3 for a, b in zip(before, page.shown())), (before, page.shown())


def axis(page, _):
    """A trace without wall-clock time has seconds only."""
    page.browser.press("c")
    assert page.status() == "the trace does not say when it was recorded"
    page.browser.press("0")
    assert re.match(r"0\.0+ s to ", page.status()), page.status()


def keys(page, screenshots):
    opened = "return document.getElementById('help').open"
    page.browser.press("?")
    assert page.browser.run(opened)
    page.browser.screenshot(screenshots / "help.png")
    page.browser.press("escape")
    assert not page.browser.run(opened)
    page.browser.press("e")
    assert "requests" in page.text("#summary") and "longest" in page.text("#summary"), page.text("#summary")
    page.browser.screenshot(screenshots / "explained.png")
    name = re.search(r"\bw\d+\b", page.text("#summary"))[0]
    page.follow(name, "#summary")
    assert page.heading().startswith(f"{name} "), page.heading()
    dark = "return document.documentElement.classList.contains('dark')"
    page.browser.press("t")
    assert page.browser.run(dark)
    page.browser.press("t")
