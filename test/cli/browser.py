"""Drives a headless Chromium through its DevTools protocol, by the pipe that --remote-debugging-pipe opens.

    browser.py PAGE.html SCRIPT [FOLDER]

Opens the page in both themes and at a phone's width and, in each, runs what SCRIPT says, a line each:
    click SELECTOR       must exist; a click as the browser makes it
    key NAME             such as Tab, Enter, Escape
    type SELECTOR TEXT   into a field
    true EXPRESSION      JavaScript that must become true
Fails on the first of these that does not hold, on any message to the console and on any exception. With FOLDER, leaves a
screenshot of each there.
"""

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

VIEWS = [("light", 1280), ("dark", 1280), ("light", 390), ("dark", 390)]


class Browser:
    def __init__(self):
        program = shutil.which("chromium") or shutil.which("chromium-browser")
        to_read, self.write = os.pipe()
        self.read, to_write = os.pipe()
        self.profile = tempfile.mkdtemp()

        def connect():  # the browser reads 3 and writes 4
            a, b = os.dup(to_read), os.dup(to_write)
            os.dup2(a, 3)
            os.dup2(b, 4)

        self.process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--disable-background-networking", "--hide-scrollbars", f"--user-data-dir={self.profile}", "--remote-debugging-pipe", "about:blank"],
            preexec_fn=connect, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_write)
        self.n, self.rest, self.session, self.said = 0, b"", None, []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in "Page", "Runtime", "Log", "Network":
            self.call(domain + ".enable")

    def message(self):
        while b"\0" not in self.rest:
            got = os.read(self.read, 1 << 20)
            if not got:
                raise SystemExit("the browser went away")
            self.rest += got
        text, self.rest = self.rest.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, **params):
        self.n += 1
        order = {"id": self.n, "method": method, "params": params}
        if self.session:
            order["sessionId"] = self.session
        os.write(self.write, json.dumps(order).encode() + b"\0")
        while True:
            m = self.message()
            if m.get("id") == self.n:
                if "error" in m:
                    raise SystemExit(f"{method}: {m['error']}")
                return m["result"]
            self.note(m)

    def note(self, m):
        p = m.get("params", {})
        if m.get("method") == "Runtime.exceptionThrown":
            self.said.append("exception: " + json.dumps(p["exceptionDetails"])[:600])
        if m.get("method") == "Runtime.consoleAPICalled":
            self.said.append("console: " + json.dumps(p["args"])[:300])
        if m.get("method") == "Log.entryAdded":
            self.said.append("log: " + p["entry"]["text"])
        if m.get("method") == "Network.requestWillBeSent" and not p["request"]["url"].startswith(("file:", "data:", "about:")):
            self.said.append("asks the network for " + p["request"]["url"])

    def value(self, expression):
        r = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in r:
            raise SystemExit(f"{expression}: {json.dumps(r['exceptionDetails'])[:600]}")
        return r["result"].get("value")

    def wait(self, expression, where=""):
        for _ in range(100):  # pages draw when they have time
            if self.value(f"!!({expression})"):
                return
            time.sleep(0.1)
        raise SystemExit(f"{where}never true: {expression}")

    def click(self, selector):
        at = self.value(
            f"""(() => {{ const e = document.querySelector({json.dumps(selector)}); if (!e) return null;
            e.scrollIntoView({{block: 'center', inline: 'center', behavior: 'instant'}}); const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; }})()""")
        if not at:
            raise SystemExit(f"nothing to click: {selector}")
        for kind in "mousePressed", "mouseReleased":
            self.call("Input.dispatchMouseEvent", type=kind, x=at[0], y=at[1], button="left", clickCount=1)

    def key(self, name):
        codes = {"Tab": 9, "Enter": 13, "Escape": 27, "ArrowRight": 39, "ArrowDown": 40}
        more = {"text": "\r"} if name == "Enter" else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=name, code=name, windowsVirtualKeyCode=codes[name], **more)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=name, code=name, windowsVirtualKeyCode=codes[name])

    def shot(self, path, whole=True):
        picture = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole, **(
            {"clip": {"x": 0, "y": 0, "width": self.value("innerWidth"), "height": self.value("document.documentElement.scrollHeight"), "scale": 1}} if whole else {}))
        with open(path, "wb") as f:
            f.write(base64.b64decode(picture["data"]))

    def close(self):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)


def visit(b, page, theme, width, script, folder):
    where = f"{theme}, {width} wide"
    b.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])
    b.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
    b.call("Page.navigate", url=f"file://{os.path.abspath(page)}?{theme}{width}")
    b.wait(f"location.search === '?{theme}{width}' && document.documentElement?.dataset.ready === 'yes'")
    if folder:
        time.sleep(0.3)
        b.shot(os.path.join(folder, f"{theme}-{width}.png"))
    if b.value("document.documentElement.scrollWidth > innerWidth"):
        raise SystemExit(f"{where}: wider than the window")
    for line in script:
        what, _, rest = line.partition(" ")
        if what == "click":
            b.click(rest)
        elif what == "key":
            b.key(rest)
        elif what == "type":
            selector, _, text = rest.partition(" ")
            b.value(f"document.querySelector({json.dumps(selector)}).focus()")
            b.call("Input.insertText", text=text)
        elif what == "shot":
            if folder:
                b.shot(os.path.join(folder, f"{rest}-{theme}-{width}.png"), False)
        elif what == "true":
            b.wait(rest, where + ": ")
        else:
            raise SystemExit(f"unknown: {line}")
    if b.said:
        raise SystemExit(f"{where}: {b.said}")


def main():
    page, script = sys.argv[1], [line.strip() for line in open(sys.argv[2]) if line.strip() and not line.startswith("#")]
    b = Browser()
    try:
        for theme, width in VIEWS:
            visit(b, page, theme, width, script, sys.argv[3] if len(sys.argv) > 3 else None)
    finally:
        b.close()
    print(f"{len(VIEWS)} views, {len(script)} steps each: no error")


main()
