"""`cenote run --chaos --html`: the faults are drawn and walked, lost connections have marks and reasons, and what
changes nothing has no mark."""

import re

from page import Page


def check(browser, drawer, screenshots):
    browser.prefer("light")
    drawn, trace = drawer.folder / "chaos.html", drawer.folder / "chaos.bson"
    said = drawer.run("run", "--chaos", "--seconds", "8", "--tasks", "16", "--html", drawn, "--trace", trace)
    page = Page(browser, drawn)
    page.load("#axis=seconds")
    browser.screenshot(screenshots / "chaos.png")
    listed = re.findall(r"^injected: (.+), for ", page.story().partition("injected faults")[2], re.MULTILINE)
    table = re.findall(r"^[\d.]+ s +(\S.*?)  ", said.partition("trouble")[2], re.MULTILINE)
    assert listed and [one.strip() for one in table][:len(listed)] == listed, (listed, said)
    walked(page, listed)
    lost(page)
    # Repeated checks of the server are one mark for each time that the pool became ready.
    steps = drawer.run("replay", trace, "--type", "Ready", "--json").count("\n")
    page.browser.press("0", "s")
    marks = int(re.search(r"([\d,]+) ready", page.story())[1].replace(",", ""))
    events = drawer.run("replay", trace, "--type", "ConnectionPoolReady", "--json").count("\n")
    assert marks == max(1, events) <= steps, (marks, events, steps)
    page.quiet()


def walked(page, faults):
    """n stops at each of them, and the panel says what came of it."""
    page.browser.press("home", "escape", "0")
    seen = []
    for _ in range(2000):
        page.browser.press("n")
        if page.status().startswith("no later"):
            break
        heading = page.heading()
        if heading.startswith("injected: "):
            seen.append(re.match(r"injected: (.+), for ", heading)[1])
            assert "came of it\nhit " in page.story(), page.story()
            if len(seen) == len(faults):
                break
    assert seen == faults, (seen, faults)


def lost(page):
    page.browser.press("escape", "0")
    page.follow("connection lost", "#legend")
    assert "what\nconnection lost" in page.story(), page.story()
    page.follow("connection c")
    assert re.search(r"closed\nerror: \S", page.story()), page.story()
