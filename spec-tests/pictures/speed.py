"""A million steps: open in three seconds, and move without a wait."""

from page import Page

OPEN_MAX, FRAME_MAX_MS = 3, 250


def check(browser, drawer, screenshots):
    page = Page(browser, drawer.draw("long", "--steps", "1000000", "--leak-every", "200000"))
    for scheme in ["dark", "light"]:
        browser.prefer(scheme)
        page.load()
        browser.screenshot(screenshots / f"long-{scheme}.png")
    took = min(page.load() for _ in range(3))
    print(f"a million steps open in {took:.2f} s")
    assert took < OPEN_MAX, f"{took} s"
    # A full pool is no wall: uses differ by how long they were.
    page.load("#at=100&span=0.5")
    browser.screenshot(screenshots / "load.png")
    shades = page.pixels(["--use1", "--use2", "--use3", "--use4"])
    assert all(count > 200 for count in shades.values()), shades
    milliseconds = frame(page)
    print(f"{milliseconds:.0f} ms a picture while moving")
    assert milliseconds < FRAME_MAX_MS
    page.quiet()


def frame(page):
    """Milliseconds from a key to the picture, in the middle of 20."""
    took = sorted(page.browser.wait_for("""
        const done = arguments[0], took = [];
        const press = (key) => document.dispatchEvent(new KeyboardEvent("keydown", { key }));
        press("0"); press("+");
        (function once() {
            if (took.length === 20) return done(took);
            const start = performance.now();
            press(took.length % 2 ? "ArrowLeft" : "ArrowRight");
            requestAnimationFrame(() => { took.push(performance.now() - start); once(); });
        })();"""))
    return took[10]
