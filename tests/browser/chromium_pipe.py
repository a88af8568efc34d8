"""A small driver for headless Chromium: the DevTools protocol over a pair of pipes, no port and no other package.

with Chromium(binary) as browser:
    browser.open(path)
    browser.run("document.title")
"""

import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "headless_shell")
SWITCHES = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
    "--remote-debugging-pipe",
)  # fmt: skip
# Chromium reads from descriptor 3 and writes to 4, whatever ours are called.
START = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(word), fcntl.F_DUPFD, 10) for word in sys.argv[1:3]]
for place, end in zip((3, 4), ends):
    os.dup2(end, place)
os.execv(sys.argv[3], sys.argv[3:])
"""


def find_chromium() -> str | None:
    """Return the browser that GAMLP_BROWSER names, or the first on the PATH."""
    named = os.environ.get("GAMLP_BROWSER")
    return named or next(filter(None, map(shutil.which, NAMES)), None)


class Chromium:
    """One browser with one tab. `requests` and `complaints` fill up while pages load and scripts run."""

    def __init__(self, binary: str, *, timeout: float = 60) -> None:
        self.timeout = timeout
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self._number, self._rest, self._session = 0, b"", None
        self._loaded: set[str] = set()  # what Chromium calls loaders: one a page, so that no page is taken for another
        self._profile = tempfile.mkdtemp(prefix="gamlp-browser-")
        profile = f"--user-data-dir={self._profile}"
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        self._process = subprocess.Popen(
            [sys.executable, "-c", START, str(theirs_in), str(theirs_out), binary, *SWITCHES, profile],
            pass_fds=(theirs_in, theirs_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.call("Page.setLifecycleEventsEnabled", enabled=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.terminate()
        self._process.wait(20)
        os.close(self._in)
        os.close(self._out)
        shutil.rmtree(self._profile, ignore_errors=True)

    def call(self, method, **parameters):
        """Ask for something and return the answer; events that come before it are noted."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        number = self._number
        return self._until(lambda answer: answer.get("id") == number)["result"]

    def open(self, page: Path | str) -> float:
        """Open a file, or an address, and return the seconds until its load event."""
        started = time.perf_counter()
        answer = self.call("Page.navigate", url=page if isinstance(page, str) else page.resolve().as_uri())
        if "errorText" in answer:
            raise RuntimeError(f"{page}: {answer['errorText']}")
        if answer["loaderId"] not in self._loaded:
            self._until(lambda _: answer["loaderId"] in self._loaded)
        return time.perf_counter() - started

    def run(self, script: str):
        """Return the value of a script; its exception is raised here."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(json.dumps(answer["exceptionDetails"])[:2000])
        return answer["result"].get("value")

    def looks(self, *, width: int = 1280, height: int = 900, dark: bool = False, phone: bool = False) -> None:
        """Set the size of the window, and which colours the system prefers."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)
        colours = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", features=colours)

    def _until(self, wanted):
        ends = time.monotonic() + self.timeout
        while True:
            while b"\0" not in self._rest:
                ready, _, _ = select.select([self._in], [], [], max(0, ends - time.monotonic()))
                if not ready:
                    raise TimeoutError(f"Chromium was silent for {self.timeout} s")
                more = os.read(self._in, 1 << 20)
                if not more:
                    raise EOFError("Chromium ended")
                self._rest += more
            line, self._rest = self._rest.split(b"\0", 1)
            answer = json.loads(line)
            self._note(answer)
            if "error" in answer:
                raise RuntimeError(answer["error"])
            if wanted(answer):
                return answer

    def _note(self, event):
        method, facts = event.get("method"), event.get("params", {})
        if method == "Page.lifecycleEvent" and facts["name"] == "load":
            self._loaded.add(facts["loaderId"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(facts["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(facts["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and facts["type"] in ("error", "warning", "assert"):
            self.complaints.append(json.dumps(facts["args"]))
        elif method == "Log.entryAdded" and facts["entry"]["level"] in ("error", "warning"):
            self.complaints.append(facts["entry"]["text"])
        elif method == "Page.javascriptDialogOpening":
            self.complaints.append(f"dialog: {facts['message']}")
