"""A browser without a window, driven by the WebDriver protocol: as much of it as the check needs."""

import base64
import json
import re
import subprocess
import tempfile
import urllib.request

# Without the sandbox, which root cannot have: the pages are our own. Without what asks for the network.
ARGUMENTS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--hide-scrollbars", "--window-size=1280,800",
]
KEYS = {"left": "\ue012", "right": "\ue014", "up": "\ue013", "down": "\ue015", "escape": "\ue00c",
        "enter": "\ue007", "home": "\ue011", "end": "\ue010", "shift": "\ue008", "control": "\ue009"}

# Whatever proxies the environment names: the driver is here.
DIRECTLY = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Browser:
    """Chromium, by ChromeDriver; both end with the block."""

    def __enter__(self):
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, text=True)
        for line in self.driver.stdout:
            if found := re.search(r"successfully on port (\d+)", line):
                break
        self.base = f"http://127.0.0.1:{found[1]}"
        options = {"args": [*ARGUMENTS, f"--user-data-dir={self.profile.name}"]}
        wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        session = self.call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        self.base += f"/session/{session['sessionId']}"
        return self

    def __exit__(self, *_):
        try:
            self.call("DELETE", "")
        finally:
            self.driver.terminate()
            self.driver.wait()
            self.profile.cleanup()

    def call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, method=method)
        with DIRECTLY.open(request, timeout=60) as response:
            return json.load(response)["value"]

    def open(self, url):
        self.call("POST", "/url", {"url": url})

    def run(self, script, *arguments):
        """What a function with this body returns."""
        return self.call("POST", "/execute/sync", {"script": script, "args": arguments})

    def wait_for(self, script, *arguments):
        """What a function with this body gives to its last argument, which it calls."""
        return self.call("POST", "/execute/async", {"script": script, "args": arguments})

    def prefer(self, scheme):
        """What the visitor's system prefers: light or dark."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.devtools("Emulation.setEmulatedMedia", {"features": features})

    def resize(self, width, height):
        """The size of the page; a width of 0 is that of the window."""
        parameters = {"width": width, "height": height, "deviceScaleFactor": 0, "mobile": False}
        self.devtools("Emulation.setDeviceMetricsOverride", parameters)

    def before_pages(self, script):
        """Runs before the scripts of all pages that are opened from now on; returns an id."""
        return self.devtools("Page.addScriptToEvaluateOnNewDocument", {"source": script})["identifier"]

    def not_before_pages(self, identifier):
        self.devtools("Page.removeScriptToEvaluateOnNewDocument", {"identifier": identifier})

    def devtools(self, command, parameters):
        return self.call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def frame(self, number):
        """All that follows is about this frame; `None` is the page."""
        self.call("POST", "/frame", {"id": number})

    def press(self, *keys):
        """Keys, one after another, to whatever has the focus."""
        strokes = []
        for key in keys:
            value = KEYS.get(key, key)
            strokes += [{"type": "keyDown", "value": value}, {"type": "keyUp", "value": value}]
        self.perform({"type": "key", "id": "keyboard", "actions": strokes})

    def move(self, x, y):
        self.perform(self.mouse({"type": "pointerMove", "duration": 0, "x": x, "y": y}))

    def drag(self, start, end):
        move = {"type": "pointerMove", "duration": 0}
        self.perform(self.mouse(
            {**move, "x": start[0], "y": start[1]}, {"type": "pointerDown", "button": 0},
            {**move, "x": end[0], "y": end[1]}, {"type": "pointerUp", "button": 0}))

    def click(self, x, y):
        self.drag((x, y), (x, y))

    def drag_with(self, key, start, end):
        """With a key held down."""
        value, move, pause = KEYS[key], {"type": "pointerMove", "duration": 0}, {"type": "pause"}
        keys = [{"type": "keyDown", "value": value}, pause, pause, pause, pause, {"type": "keyUp", "value": value}]
        self.perform({"type": "key", "id": "keyboard", "actions": keys}, self.mouse(
            pause, {**move, "x": start[0], "y": start[1]}, {"type": "pointerDown", "button": 0},
            {**move, "x": end[0], "y": end[1]}, {"type": "pointerUp", "button": 0}, pause))

    def press_with(self, key, other):
        """Two keys at once, as in Ctrl + V."""
        down, up = [{"type": kind, "value": KEYS[key]} for kind in ("keyDown", "keyUp")]
        strokes = [{"type": kind, "value": other} for kind in ("keyDown", "keyUp")]
        self.perform({"type": "key", "id": "keyboard", "actions": [down, *strokes, up]})

    def tap(self, x, y):
        self.touch(((x, y), (x, y)))

    def touch(self, *fingers):
        """Fingers, each of which moves from a place to another at the same time."""
        sources = []
        for number, (start, end) in enumerate(fingers):
            steps = [{"type": "pointerMove", "duration": 0, "x": int(start[0]), "y": int(start[1])},
                     {"type": "pointerDown", "button": 0}]
            for part in range(1, 6):
                x, y = [int(a + (b - a) * part / 5) for a, b in zip(start, end)]
                steps.append({"type": "pointerMove", "duration": 20, "x": x, "y": y})
            steps.append({"type": "pointerUp", "button": 0})
            sources.append({"type": "pointer", "id": f"finger{number}",
                            "parameters": {"pointerType": "touch"}, "actions": steps})
        self.perform(*sources)

    def wheel(self, x, y, by):
        turn = {"type": "scroll", "x": x, "y": y, "deltaX": 0, "deltaY": by, "duration": 0}
        self.perform({"type": "wheel", "id": "wheel", "actions": [turn]})

    @staticmethod
    def mouse(*actions):
        return {"type": "pointer", "id": "mouse", "actions": list(actions)}

    def perform(self, *sources):
        self.call("POST", "/actions", {"actions": sources})

    def log(self):
        """What the console said since it was asked last."""
        return [entry["message"] for entry in self.call("POST", "/se/log", {"type": "browser"})]

    def screenshot(self, path):
        path.write_bytes(base64.b64decode(self.call("GET", "/screenshot")))
