"""The servers of a client above its pools: one pool with its topology, all pools together, and the topology alone."""

import re

from looks import WATCH, contrast, offline
from page import Page, eventually

SERVERS = [f"{name}.example.com:27017" for name in "abc"]


def check(browser, drawer, screenshots):
    folder = drawer.folder / "client"
    drawer.run("record", folder, "--case", "fail-over")
    one_pool(browser, drawer, screenshots, folder)
    alone(browser, drawer, screenshots, folder)
    together(browser, drawer, screenshots, folder)


def pool(folder, server):
    return folder / f"{server.replace(':', '-')}.bson"


def one_pool(browser, drawer, screenshots, folder):
    """The lanes of the servers are drawn, said, pinned, found and walked to, and lead to what came of them."""
    drawn = drawer.folder / "one.html"
    drawer.run("draw", folder / "topology.bson", pool(folder, SERVERS[0]), "--html", drawn)
    page = Page(browser, drawn)
    for scheme in ["dark", "light"]:
        browser.prefer(scheme)
        watch = browser.before_pages(WATCH)
        page.load()
        browser.not_before_pages(watch)
        browser.screenshot(screenshots / f"servers-{scheme}.png")
        contrast(page, f"servers, {scheme}")
        seen = page.pixels(["--primary", "--secondary", "--failed"])
        assert all(count > 50 for count in seen.values()), seen
    assert "1 election, at 03:07:12.600: b.example.com:27017. No primary from 03:07:12.000 for 600 ms. " in page.text("#verdict")
    legend = page.text("#legend")
    for said in ["primary", "secondary", "unknown", "◆ elected", "✕ removed"]:
        assert said in legend, (said, legend)

    # What the pointer is over: the role, the error, and why a server was removed.
    lanes = {}
    for server, (share, expected) in zip(SERVERS, [
            (0.75, "a.example.com:27017 unknown for 3 s"),
            (0.9, "b.example.com:27017 primary for "),
            (0.5, "c.example.com:27017 secondary for 17 s")]):
        lanes[server] = page.point_at(re.escape(expected), columns=(share,), step=4)
    browser.move(*lanes[SERVERS[0]])
    assert "from 03:07:12.000 (12.000000 s)\nUnknown: hello: timed out after 10s" in page.tip(), page.tip()
    browser.move(*lanes[SERVERS[2]])
    assert "removed: hello: the primary, b.example.com:27017, does not list this address" in page.tip(), page.tip()

    # Pinned, the lost primary leads to the clear of its pool, and that back to the server.
    browser.click(*lanes[SERVERS[0]])
    story = page.story()
    assert story.startswith("a.example.com:27017 unknown for 3 s\nis\nUnknown: hello: timed out after 10s\n"), story
    assert "before\nprimary" in story and "then\nsecondary" in story, story
    assert "cenote replay TOPOLOGY --until step=19" in story, story
    page.follow("Clear interrupting")
    told = " ".join(page.story().split())
    assert "because a.example.com:27017 became Unknown: hello: timed out after 10s, at 03:07:12.000" in told, told
    page.follow("a.example.com:27017 unknown")
    assert page.heading().startswith("a.example.com:27017 unknown"), page.heading()
    browser.screenshot(screenshots / "server.png")

    # Found by a text, one after the other; and what all were at a time.
    page.search("b.example.com")
    first = page.heading()
    page.browser.press("/", "enter")
    assert page.heading().startswith("b.example.com:27017 ") and page.heading() != first, (first, page.heading())
    page.search("03:07:12.3")
    story = page.story()
    for server, role in zip(SERVERS, ["unknown", "secondary", "secondary"]):
        assert f"{server}: {role}" in story, (server, story)

    # `n` stops at the election and at the removal, too.
    browser.press("escape", "0", "home")
    stops = set()
    for _ in range(300):
        browser.press("n")
        if page.status().startswith("no later"):
            break
        stops.add(page.heading())
    assert any(stop.startswith("b.example.com:27017 primary") for stop in stops), stops
    assert any(stop.startswith("c.example.com:27017 secondary") for stop in stops), stops
    # The explanation has both.
    browser.press("escape", "0", "e")
    explained = page.text("#summary")
    assert "a topology, by cenote" in explained and "a.example.com:27017, by cenote" in explained, explained
    page.quiet()


def alone(browser, drawer, screenshots, folder):
    """Without a pool there are the servers, and nothing of a pool."""
    browser.prefer("light")
    drawn = drawer.folder / "alone.html"
    assert drawer.run("draw", folder / "topology.bson", "--html", drawn).startswith("33 steps drawn in ")
    page = Page(browser, drawn)
    page.load()
    browser.screenshot(screenshots / "servers-alone.png")
    assert page.text("#title") == "Servers of a client: 3 servers"
    assert "idle" not in page.text("#legend") and "check-out" not in page.text("#verdict")
    story = page.story()
    assert "changes of the topology: 7" in story, story
    page.follow("03:07:12.600")
    assert page.heading().startswith("b.example.com:27017 primary for "), page.heading()
    for key in ["+", "-", "s", "escape", "[", "]", "0", "c", "i", "i"]:
        browser.press(key)
    offline(page)
    page.quiet()


def together(browser, drawer, screenshots, folder):
    """The servers, and each pool below them, with the same time in view."""
    drawn = drawer.folder / "client.html"
    assert drawer.run("draw", folder, "--html", drawn).startswith("4 traces drawn in ")
    page = Page(browser, drawn)
    page.load()
    browser.screenshot(screenshots / "client.png")
    names = browser.run("return [...document.querySelectorAll('h2')].map((title) => title.innerText)")
    assert names == ["servers", *(f"pool of {server}" for server in SERVERS)], names
    offline(page)
    frames = len(names)
    whole = [seen(browser, number) for number in range(frames)]
    assert len(set(whole)) == 1, whole
    # Zoomed in one frame, all follow; a pool is where its server was lost.
    in_frame(browser, 0, lambda: press(browser, "n"))
    in_frame(browser, 0, lambda: press(browser, "z"))
    # Its status is the time in view again when nothing is pinned.
    in_frame(browser, 0, lambda: press(browser, "escape"))
    eventually(lambda: seen(browser, 0) != whole[0], lambda: seen(browser, 0))
    for number in range(1, frames):
        eventually(lambda: seen(browser, number) == seen(browser, 0), lambda: (number, seen(browser, number)))
    browser.screenshot(screenshots / "client-zoomed.png")
    # A link to a moment moves all of them.
    browser.run("window.location.hash = '#at=12.3&span=1'")
    for number in range(frames):
        eventually(lambda: seen(browser, number) == "03:07:11.800 to 03:07:12.800", lambda: (number, seen(browser, number)))
    # Closed and opened again, a pool shows the same time as the others.
    toggle = "document.querySelectorAll('h2 button')[2].click()"
    browser.run(toggle)
    assert browser.run("return document.querySelectorAll('iframe').length") == frames - 1
    in_frame(browser, 0, lambda: press(browser, "-"))
    browser.run(toggle)
    assert browser.run("return document.querySelectorAll('iframe').length") == frames
    eventually(lambda: seen(browser, 2) == seen(browser, 0), lambda: (seen(browser, 2), seen(browser, 0)))
    page.quiet()


def in_frame(browser, number, act):
    browser.run("document.querySelectorAll('section')[arguments[0]].scrollIntoView()", number)
    enter(browser, number)
    result = act()
    browser.frame(None)
    return result


def enter(browser, number):
    """By the place in the page: a frame that was opened again is the last of its window."""
    order = browser.run("""
        const frames = [...document.querySelectorAll("iframe")];
        const wanted = document.querySelectorAll("section")[arguments[0]].querySelector("iframe");
        return [...Array(window.length).keys()].find((i) => window[i] === wanted.contentWindow);""", number)
    browser.frame(order)


def press(browser, key):
    browser.run("document.getElementById('main').focus()")
    browser.press(key)


def seen(browser, number):
    """From when to when this frame shows."""
    def status():
        return browser.run("""
            const status = document.getElementById("status").textContent;
            return status.includes(" to ") ? status.split(" (")[0] : status;""")
    return in_frame(browser, number, status)
