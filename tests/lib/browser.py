"""A real browser without a screen: Debian's chromium, spoken to over pipes (the DevTools protocol), so that it
listens nowhere.

    browser = Browser(directory); browser.start()
    tab = browser.tab(); tab.open("http://127.0.0.1:9100/")
    tab.wait("document.title === 'x'"); tab.value("document.body.innerText"); tab.picture("/tmp/x.png")
"""

import base64
import contextlib
import fcntl
import json
import os
import select
import shutil
import subprocess
import time

from waiting import GENEROUS_S, wait_until


class Browser:
    def __init__(self, directory):
        self._directory = directory
        self._last = 0
        self._buffer = b""
        self._process = None
        self.told = []  # events that nobody has looked at yet

    def start(self):
        low_in, self._to = os.pipe()
        self._from, low_out = os.pipe()
        # It wants them as 3 and 4: neither is to be in the way of the other.
        theirs_in, theirs_out = (fcntl.fcntl(low, fcntl.F_DUPFD_CLOEXEC, 20) for low in (low_in, low_out))
        self._process = subprocess.Popen(
            ["/bin/bash", "-c", f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}', "bash", shutil.which("chromium"),
             "--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--no-first-run", "--disable-background-networking", "--disable-component-update", "--no-proxy-server",
             "--lang=en", f"--user-data-dir={self._directory}/chromium", "about:blank"],
            pass_fds=(theirs_in, theirs_out), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, env={**os.environ, "HOME": str(self._directory), "TZ": "UTC"})
        for theirs in (low_in, low_out, theirs_in, theirs_out):
            os.close(theirs)

    def close(self):
        if self._process is None:
            return
        with contextlib.suppress(OSError):
            self.call("Browser.close")
        try:
            self._process.wait(timeout=GENEROUS_S)
        finally:
            self._process.kill()
            self._process.wait()
            self._process = None
            os.close(self._to)
            os.close(self._from)

    def _message(self, until):
        while b"\0" not in self._buffer:
            left = until - time.monotonic()
            assert left > 0 and select.select([self._from], [], [], left)[0], "the browser does not answer"
            got = os.read(self._from, 1 << 20)
            if not got:
                raise ConnectionError("the browser is gone")
            self._buffer += got
        text, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(text)

    def call(self, method, session=None, **parameters):
        """What comes of it; events that come before are kept in `told`."""
        self._last += 1
        asked = {"id": self._last, "method": method, "params": parameters}
        if session:
            asked["sessionId"] = session
        os.write(self._to, json.dumps(asked).encode() + b"\0")
        until = time.monotonic() + GENEROUS_S
        while True:
            message = self._message(until)
            if message.get("id") == self._last:
                assert "error" not in message, (method, message["error"])
                return message["result"]
            if "method" in message:
                self.told.append(message)

    def tab(self):
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        return Tab(self, target)


def _seen(selector):
    return (f"((element) => element && element.checkVisibility() ? element.innerText : '')"
            f"(document.querySelector({json.dumps(selector)}))")


class Tab:
    def __init__(self, browser, target):
        self._browser = browser
        self._target = target
        self._session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method, **parameters):
        return self._browser.call(method, self._session, **parameters)

    def close(self):
        self._browser.call("Target.closeTarget", targetId=self._target)

    def open(self, url):
        self.call("Page.navigate", url=url)

    def hurry(self):
        """What scripts of the next page put off comes after a tenth of the time."""
        self.call("Page.addScriptToEvaluateOnNewDocument", source="""{
            const later = window.setTimeout;
            window.setTimeout = (what, ms) => later(what, ms / 10);
        }""")

    def value(self, expression):
        """What an expression comes to; one that throws fails the test."""
        done = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in done, (expression, done["exceptionDetails"])
        return done["result"].get("value")

    def text(self, selector="body"):
        """What a reader sees of it, "" if it is not there."""
        return self.value(_seen(selector))

    def wait(self, expression, what):
        try:
            wait_until(lambda: self.value(expression), what)
        except AssertionError:
            print(self.text())
            raise

    def wait_text(self, selector, *words):
        self.wait(f"((text) => {json.dumps(words)}.every((word) => text.includes(word)))({_seen(selector)})",
                  f"{selector} says {words}")

    def size(self, width, height, mobile=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile)

    def colors(self, scheme):
        """light or dark"""
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def press(self, key):
        """Tab, Enter and the like."""
        text = {"Enter": "\r"}.get(key)
        codes = {"windowsVirtualKeyCode": {"Tab": 9, "Enter": 13}[key], "key": key, "code": key}
        self.call("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", **codes,
                  **({"text": text} if text else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", **codes)

    def picture(self, path):
        """A PNG of the whole page."""
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        with open(path, "wb") as out:
            out.write(base64.b64decode(shot["data"]))

    def wrong(self):
        """What the browser has found fault with, of this tab: what it did not load, errors of scripts."""
        self.value("0")
        return [message["params"] for message in self._browser.told
                if message.get("sessionId") == self._session and (
                    message["method"] == "Runtime.exceptionThrown"
                    or message["method"] == "Log.entryAdded" and message["params"]["entry"]["level"] == "error")]
