"""Two traces in one page: both are drawn, and move together unless they should not."""

from looks import offline
from page import Page, eventually


def check(browser, drawer, screenshots):
    browser.prefer("light")
    traces = [drawer.record(name, "--case", case) for name, case in [("before", "slow-server"), ("after", "too-small")]]
    both = drawer.folder / "both.html"
    said = drawer.run("draw", traces[0], "--beside", traces[1], "--html", both)
    assert said.startswith("35241 steps beside 40667 drawn in "), said
    page = Page(browser, both)
    page.load()
    browser.screenshot(screenshots / "beside.png")
    names = browser.run("return [...document.querySelectorAll('h2')].map((title) => title.innerText)")
    assert [name.rpartition("/")[2] for name in names] == ["before.bson", "after.bson"], names
    offline(page)

    browser.run("window.location.hash = '#at=12.5&span=1'")
    for number in range(2):
        eventually(lambda: seen(browser, number) == "03:07:12.000 to 03:07:13.000", lambda: seen(browser, number))
    browser.frame(0)
    press(browser, "-")
    browser.frame(None)
    eventually(lambda: seen(browser, 0) == seen(browser, 1) != "03:07:12.000 to 03:07:13.000", lambda: seen(browser, 1))
    together = seen(browser, 0)
    browser.run("document.getElementById('together').click()")
    browser.frame(0)
    press(browser, "-")
    browser.frame(None)
    eventually(lambda: seen(browser, 0) != together, lambda: together)
    assert seen(browser, 1) == together, (seen(browser, 1), together)
    browser.frame(0)
    press(browser, "l")
    browser.frame(None)
    eventually(lambda: "#at=12.5" in browser.run("return location.hash"), lambda: browser.run("return location.hash"))
    page.quiet()


def press(browser, key):
    browser.run("document.getElementById('main').focus()")
    browser.press(key)


def seen(browser, number):
    """From when to when this trace is shown."""
    browser.frame(number)
    status = browser.run("""
        const status = document.getElementById("status").textContent;
        return status.includes(" to ") ? status.split(" (")[0] : status;""")
    browser.frame(None)
    return status
