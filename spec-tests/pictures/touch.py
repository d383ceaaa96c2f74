"""A phone: the page fits, a tap pins, one finger moves, two fingers zoom the chart and not the page."""

import re

from looks import TRACES
from page import Page

WIDTH, HEIGHT = 390, 844


def check(browser, drawer, screenshots):
    page = Page(browser, drawer.draw("phone", *TRACES["small"]))
    browser.resize(WIDTH, HEIGHT)
    for scheme in ["dark", "light"]:
        browser.prefer(scheme)
        page.load()
        browser.screenshot(screenshots / f"phone-{scheme}.png")
    fits(page)
    tap(page, screenshots)
    page.load()
    pinch(page)
    page.load()
    swipe(page)
    page.quiet()
    browser.devtools("Emulation.clearDeviceMetricsOverride", {})


def fits(page):
    wide, tall = page.browser.run("const root = document.documentElement;"
                                  "return [root.scrollWidth, root.scrollHeight]")
    assert wide <= WIDTH and tall <= HEIGHT, (wide, tall)
    _, _, width, height = page.box()
    assert width == WIDTH and height > HEIGHT * 0.5, (width, height)
    assert page.story() == "", "the panel leaves the timeline its place"


def tap(page, screenshots):
    left, top, width, height = page.box()
    # In the lanes, which are at the bottom, and full of uses.
    page.browser.tap(int(left + 84 + (width - 96) * 0.6), int(top + height) - 120)
    assert re.match(r"c\d+ in use by w\d+ for ", page.heading()), page.heading()
    page.browser.screenshot(screenshots / "phone-tap.png")
    page.browser.tap(*close(page))
    assert page.story() == ""


def close(page):
    return page.browser.run("const b = document.getElementById('close').getBoundingClientRect();"
                            "return [Math.round(b.left + b.width / 2), Math.round(b.top + b.height / 2)]")


def pinch(page):
    left, top, width, height = page.box()
    x, y = left + 84 + (width - 96) / 2, top + 150
    whole = page.shown()
    page.browser.touch(((x - 30, y), (x - 120, y)), ((x + 30, y), (x + 120, y)))
    start, end = page.shown()
    assert 0.15 < (end - start) / (whole[1] - whole[0]) < 0.45, (whole, start, end)
    middle = sum(whole) / 2
    assert abs((start + end) / 2 - middle) < (end - start) * 0.3, (whole, start, end)
    assert page.browser.run("return window.visualViewport.scale") == 1, "the page is not zoomed"
    page.browser.touch(((x - 120, y), (x - 30, y)), ((x + 120, y), (x + 30, y)))
    assert page.length() > (end - start) * 2


def swipe(page):
    left, top, width, _ = page.box()
    page.browser.press("+", "+")
    before = page.shown()
    page.browser.touch(((left + 150, top + 150), (left + 300, top + 150)))
    after = page.shown()
    assert after[0] < before[0] and after[1] < before[1], (before, after)
