"""The picture of the README, light and dark, shows what the page of its case looks like today.

CENOTE_BLESS=1 writes it anew.
"""

import base64
import os
import pathlib

from page import Page

PICTURES = pathlib.Path(__file__).parents[2] / "docs/pictures"
# Fonts differ from one machine to another.
DIFFERENT_MAX = 0.1

# The share of pixels that differ by more than a shade; 1 if the sizes do.
DIFFERENT = """
    const [old, now, done] = arguments;
    const pixels = async (picture) => {
        const image = await createImageBitmap(await (await fetch("data:image/png;base64," + picture)).blob());
        const context = new OffscreenCanvas(image.width, image.height).getContext("2d");
        context.drawImage(image, 0, 0);
        return context.getImageData(0, 0, image.width, image.height).data;
    };
    Promise.all([pixels(old), pixels(now)]).then(([a, b]) => {
        if (a.length !== b.length) return done(1);
        const differs = (i) => [0, 1, 2].some((channel) => Math.abs(a[i + channel] - b[i + channel]) > 48);
        let count = 0;
        for (let i = 0; i < a.length; i += 4) count += differs(i);
        done(count / (a.length / 4));
    }, (error) => done(String(error)));
"""


def check(browser, drawer, screenshots):
    page = Page(browser, drawer.draw("readme", "--case", "leak"))
    browser.resize(1100, 680)
    for scheme in ["light", "dark"]:
        browser.prefer(scheme)
        page.load()
        page.browser.press("i")  # Without the panel.
        now, old = screenshots / f"leak-{scheme}.png", PICTURES / f"leak-{scheme}.png"
        browser.screenshot(now)
        if os.environ.get("CENOTE_BLESS"):
            old.write_bytes(now.read_bytes())
        share = browser.wait_for(DIFFERENT, *(base64.b64encode(it.read_bytes()).decode() for it in [old, now]))
        assert isinstance(share, (int, float)) and share <= DIFFERENT_MAX, f"{old} is out of date: {share} of its pixels"
    browser.devtools("Emulation.clearDeviceMetricsOverride", {})
    browser.prefer("light")
