"""The cases of docs/start/problem.md: the picture says what `cenote explain` says."""

import re
import struct

from looks import shapes
from page import Page
from steering import milliseconds


def check(browser, drawer, screenshots):
    browser.prefer("light")
    for part in [too_small, leak, cleared, storm, shedding, overloaded, retired]:
        part(browser, drawer, screenshots)


def open_case(browser, drawer, name):
    page = Page(browser, drawer.draw(name, "--case", name))
    page.load()
    return page, drawer.folder / f"{name}.bson"


def words(text):
    return " ".join(text.split())


def too_small(browser, drawer, screenshots):
    """Why a request waited, with the limit, the requests ahead and the holders."""
    page, trace = open_case(browser, drawer, "too-small")
    told = words(drawer.run("explain", trace, "--waiter", "12603"))
    page.search("12603")
    story = words(page.story())
    waited, ahead = re.search(r"timed out after (.*?): ", told)[1], re.search(r"(\d+) requests were ahead", told)[1]
    assert page.heading() == f"w12603 waited {waited}: timed out", page.heading()
    limit = re.search(r"in the way was (maxPoolSize: 10 of 10 in use)", told)[1]
    for expected in [f"in the way {limit}", f"ahead of it {ahead} requests", "its limit 200 ms",
                     "in use when it came: 10 connections"]:
        assert expected in story, (expected, story)
    holders = re.findall(r"(c\d+) by (w\d+) at (\S+) for (\S+ \S+) already, checked in (.*?) later", told)
    assert len(holders) > 3, told
    for connection, holder, place, before, after in holders:
        held = rf"{connection} by {holder} at {place} for (\S+ \S+) already, checked in (.*?) later"
        found = re.search(held, story)
        assert found, story
        for mine, theirs in zip(found.groups(), (before, after)):
            assert abs(milliseconds(mine) / milliseconds(theirs) - 1) < 0.01, (mine, theirs, connection)
    browser.screenshot(screenshots / "waited.png")
    # The percentiles and the counts are those of the summary.
    summary = words(drawer.run("explain", trace))
    page.browser.press("escape")
    percentiles(page, summary)
    page.browser.press("0", "s")
    story = words(page.story())
    counts = r"requests ([\d,]+): ([\d,]+) served at once, ([\d,]+) after a wait, ([\d,]+) failed"
    for number in re.search(counts, summary).groups():
        assert number in story, (number, story)
    wall_clock(page)


def percentiles(page, summary):
    told = r"uses ([\d.]+ m?s) at the median, ([\d.]+ m?s) at the 99th percentile, ([\d.]+ m?s) at the longest"
    found = re.search(told, summary)
    row = re.findall(r"[\d.]+ [mµ]?s", re.search(r"use \([\d,]+\)[^\n]+", page.story())[0])
    assert (row[0], row[2], row[3]) == found.groups(), (row, found.groups())


def wall_clock(page):
    """The axis has wall-clock times, or seconds; both are found."""
    page.browser.press("escape", "0")
    assert page.status().startswith("03:07:00"), page.status()
    page.browser.press("c", "right")
    assert re.match(r"[\d.]+ s to ", page.status()), page.status()
    page.browser.press("c")
    page.search("03:07:12.5")
    assert page.heading() == "03:07:12.500 (12.500000 s)", page.heading()
    page.load("#at=03:07:12.5&span=1")
    start, end = page.shown()
    assert abs(start - 12) < 1e-3 and abs(end - 13) < 1e-3, (start, end)
    page.load("#axis=seconds")
    assert page.status().startswith("0.0"), page.status()


def leak(browser, drawer, screenshots):
    """A leak is said, marked, walked to and found."""
    page, trace = open_case(browser, drawer, "leak")
    told = drawer.run("explain", trace, "--leaks")
    count, first = re.match(r"(\d+) look leaked", told)[1], re.search(r"(c\d+) +by (w\d+)", told)
    assert f"{count} connections look leaked" in page.text("#verdict"), page.text("#verdict")
    percentiles(page, words(drawer.run("explain", trace)))
    page.follow("look leaked", "#verdict")
    assert page.heading().startswith("c") and "looks leaked" in page.heading(), page.heading()
    page.search("looks leaked")
    page.search(first[2])
    story = words(page.story())
    if not page.heading().startswith(first[1]):
        page.follow(f"held {first[1]}")
        story = words(page.story())
    assert page.heading().startswith(f"{first[1]} in use by {first[2]} for "), page.heading()
    assert "ended reported: held for 2 s; " in story or "looks leaked" in story, story
    place = re.search(rf"{first[1]} +by {first[2]} at (\S+),", told)[1]
    assert f"called at {place} " in story, (place, story)
    browser.screenshot(screenshots / "leak.png")
    by_place(page, place)
    page.browser.press("escape", "0", "home")
    seen = set()
    for _ in range(40):
        page.browser.press("n")
        seen.add(page.heading())
    assert any("looks leaked" in one for one in seen), seen


def by_place(page, leaks):
    """The places that hold connections for the longest are listed, with the longest use of each."""
    page.browser.press("escape", "0")
    uses = int(re.search(r"^use \(([\d,]+)\)", page.story(), re.MULTILINE)[1].replace(",", ""))
    listed = page.story().partition("held connections, by place\n")[2]
    told = re.findall(r"^(\S+): (\d+) % of the time in use, ([\d,]+) uses, (.+) at the longest$", listed, re.MULTILINE)
    places, shares, counts, longest = zip(*told)
    assert places[0] == leaks and len(places) == 3 and int(shares[0]) > 50, told
    assert abs(sum(map(int, shares)) - 100) <= 1 and list(map(int, shares)) == sorted(map(int, shares), reverse=True), told
    # Those that are cut off by the end count, too.
    assert uses <= sum(int(count.replace(",", "")) for count in counts) <= uses + 10, (told, uses)
    page.follow(f"{longest[0]} at the longest")
    assert page.heading().endswith(f" for {longest[0]}") and f"called at {leaks}" in words(page.story()), page.story()
    page.browser.press("escape", "0", "s")
    assert f"{places[0]}: {shares[0]} % of the time in use" in page.story(), page.story()


def cleared(browser, drawer, screenshots):
    """What a clear did, as --clear says it; and why connections were closed."""
    page, trace = open_case(browser, drawer, "cleared")
    told = words(drawer.run("explain", trace, "--clear", "1"))
    page.search("clear")
    assert page.heading().startswith("Clear "), page.heading()
    assert told in words(page.story()), (told, page.story())
    browser.screenshot(screenshots / "clear.png")
    closed = re.search(r"connections \d+ closed \((c\d+) at once", told)[1]
    page.search(closed)
    assert "closed stale: the pool was cleared (hello: timed out after 10s)" in words(page.story()), page.story()
    # A monitor marks the pool ready again and again: one mark.
    ready = page.browser.run("return [...document.querySelectorAll('#legend li')].map((item) => item.innerText)")
    assert "ready" in ready, ready


def storm(browser, drawer, screenshots):
    """Waits for a connection of their own, and the worst of all."""
    page, trace = open_case(browser, drawer, "storm")
    assert "mostly in the way: maxConnecting." in page.text("#verdict"), page.text("#verdict")
    told = drawer.run("explain", trace, "--slowest", "3")
    worst = re.findall(r"^  (w\d+) +([\d.]+ m?s)", told, re.MULTILINE)
    assert len(worst) == 3, told
    listed = re.findall(r"^(w\d+) ([\d.]+ m?s)", page.story().partition("longest waits")[2], re.MULTILINE)
    assert listed[:3] == worst, (listed, worst)
    page.follow(f"{worst[1][0]} {worst[1][1]}")
    assert "establishment of its own connection" in page.story(), page.story()


def shedding(browser, drawer, screenshots):
    """Requests that are shed have marks of their own, and are failures among the waits."""
    page, trace = open_case(browser, drawer, "shedding")
    page.follow("shed", "#legend")
    request = re.match(r"(w\d+): check-out failed: shed \(maxPoolSize", page.heading())[1]
    assert "what\nshed" in page.story(), page.story()
    page.follow(f"{request} waited")
    assert page.heading().endswith(": shed on standing delay"), page.heading()
    page.load("#at=14&span=1")
    page.browser.press("escape")
    failed, served = page.pixels(["--failed", "--served"]).values()
    assert failed > served, f"most are shed, and {failed} pixels are red, {served} green"
    browser.screenshot(screenshots / "shed.png")


def overloaded(browser, drawer, screenshots):
    """Each back-off has one mark, which says how long it lasts; failures during one have none."""
    page, trace = open_case(browser, drawer, "overloaded")
    page.follow("back-off", "#legend")
    said = r"c\d+: the pool backs off for [\d.]+ m?s: \d+ overloads?( in a row)?"
    assert re.fullmatch(said, page.heading()), page.heading()
    assert "EstablishFailed" in page.story().partition("at the same time")[2], page.story()
    browser.screenshot(screenshots / "back-off.png")
    page.browser.press("escape", "0", "s")
    marks = re.search(r"^marks\n(.*)$", page.story(), re.MULTILINE)[1]
    backs_off, failed = (int(re.search(rf"(\d+) {kind}", marks)[1]) for kind in ["back-off", "not established"])
    assert 0 < backs_off <= failed, (backs_off, failed)
    shapes(page)


def retired(browser, drawer, screenshots):
    """Credentials that change have a mark; no case has them, so that a step takes the place of the last document."""
    trace, drawn = drawer.record("retired", "--case", "cleared"), drawer.folder / "retired.html"
    step = b"\x12t\0" + struct.pack("<q", 20_000_000_000) + b"\x08retire\0\x01\0"
    last = len(struct.pack("<i", 0) + b"\x10end\0" + struct.pack("<i", 0) + b"\0")
    trace.write_bytes(trace.read_bytes()[:-last] + struct.pack("<i", 4 + len(step)) + step)
    drawer.run("draw", trace, "--lenient", "--html", drawn)
    page = Page(browser, drawn)
    page.load()
    page.follow("connections retired", "#legend")
    assert page.heading() == "RetireConnections", page.heading()
    shapes(page)
