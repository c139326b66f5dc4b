"""A real browser without a window: opens a file, runs JavaScript in it, takes pictures, and records every complaint.

It speaks the Chrome DevTools Protocol over two pipes, as ``--remote-debugging-pipe`` has it: messages are JSON, each
ended by a zero byte.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"),
    *("--no-first-run", "--disable-extensions", "--disable-background-networking", "--disable-component-update"),
    *("--host-resolver-rules=MAP * ~NOTFOUND", "--remote-debugging-pipe"),
)
PATIENCE = 60.0
"""Seconds to wait for an answer; a busy machine starts a browser slowly."""

Message = dict[str, Any]


def find_browser() -> str | None:
    """Return the path of a browser that is installed."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Tab:
    """One page in the browser.

    Attributes
    ----------
    complaints
        Exceptions, and messages on the console.
    requests
        Addresses of everything that the page asked for, itself included.
    """

    def __init__(self, browser: Browser, session: str) -> None:
        self.browser, self.session = browser, session
        self.complaints: list[str] = []
        self.requests: list[str] = []

    def ask(self, method: str, **params: Any) -> Message:
        """Send a command and return its result."""
        return self.browser.ask(method, self.session, **params)

    def hear(self, message: Message) -> None:
        """Keep what an event says of the page."""
        params = message.get("params", {})
        match message.get("method"):
            case "Runtime.exceptionThrown":
                self.complaints.append(json.dumps(params["exceptionDetails"]))
            case "Runtime.consoleAPICalled":
                self.complaints.append(json.dumps(params["args"]))
            case "Log.entryAdded":
                self.complaints.append(params["entry"]["text"])
            case "Network.requestWillBeSent":
                self.requests.append(params["request"]["url"])

    def open(self, file: Path) -> None:
        """Open a file and wait until it is loaded."""
        self.ask("Page.navigate", url=file.resolve().as_uri())
        self.browser.wait(self.session, "Page.loadEventFired")

    def run(self, script: str) -> Any:
        """Return the value of a JavaScript expression."""
        answer = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise AssertionError(json.dumps(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def press(self, key: str) -> None:
        """Press a key that has a name, such as ``Tab`` or ``Enter``."""
        codes = {"Tab": 9, "Enter": 13}
        text = {"text": "\r"} if key == "Enter" else {}
        self.ask("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=codes[key], **text)
        self.ask("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=codes[key])

    def picture(self, *, width: int = 1280, height: int | None = None, dark: bool = False, scale: float = 1) -> bytes:
        """Return the page as a PNG; the whole of it, or its top."""
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.ask("Emulation.setEmulatedMedia", features=scheme)
        shape = {"width": width, "height": height or 900, "deviceScaleFactor": scale, "mobile": False}
        self.ask("Emulation.setDeviceMetricsOverride", **shape)
        more: Message = {} if height else {"captureBeyondViewport": True}
        return base64.b64decode(self.ask("Page.captureScreenshot", format="png", **more)["data"])


class Browser:
    """A running browser; a context manager ends it."""

    def __init__(self, program: str) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="browser-", ignore_cleanup_errors=True)
        ours, theirs = os.pipe(), os.pipe()
        reading, writing = (fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in (ours[0], theirs[1]))
        command = [program, *FLAGS, f"--user-data-dir={self._folder.name}", "about:blank"]
        self._process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{reading} 4>&{writing}', "bash", *command],
            pass_fds=(reading, writing),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for fd in (reading, writing, ours[0], theirs[1]):
            os.close(fd)
        self._out, self._in = ours[1], theirs[0]
        self._buffer, self._number = b"", 0
        self._events: list[Message] = []
        self._tabs: dict[str, Tab] = {}

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._out)
        os.close(self._in)
        self._folder.cleanup()

    def tab(self) -> Tab:
        """Open a tab that records what its page does."""
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        tab = self._tabs[session] = Tab(self, session)
        for domain in ("Page", "Runtime", "Network", "Log"):
            tab.ask(f"{domain}.enable")
        return tab

    def ask(self, method: str, session: str = "", **params: Any) -> Message:
        """Send a command and return its result."""
        self._number += 1
        number = self._number
        message = {"id": number, "method": method, "params": params, **({"sessionId": session} if session else {})}
        os.write(self._out, json.dumps(message).encode() + b"\0")
        answer = next(one for one in self._messages() if one.get("id") == number)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        result: Message = answer["result"]
        return result

    def wait(self, session: str, method: str) -> None:
        """Wait for an event, which may have come already."""
        fits = {"sessionId": session, "method": method}.items()
        if not any(fits <= event.items() for event in self._events):
            next(one for one in self._messages() if fits <= {k: one.get(k) for k in ("sessionId", "method")}.items())
        self._events.clear()

    def _messages(self) -> Iterator[Message]:
        """Yield messages as they come; events go to their tab as well."""
        end = time.monotonic() + PATIENCE
        while True:
            while b"\0" not in self._buffer:
                left = end - time.monotonic()
                if left <= 0 or not select.select([self._in], [], [], left)[0]:
                    raise TimeoutError("the browser does not answer")
                if not (more := os.read(self._in, 1 << 20)):
                    raise RuntimeError("the browser has ended")
                self._buffer += more
            raw, _, self._buffer = self._buffer.partition(b"\0")
            message: Message = json.loads(raw)
            if "method" in message:
                self._events.append({"method": message["method"], "sessionId": message.get("sessionId")})
                if tab := self._tabs.get(message.get("sessionId", "")):
                    tab.hear(message)
            yield message


@contextmanager
def browser(program: str) -> Iterator[Browser]:
    """Run a browser for as long as the block lasts."""
    with Browser(program) as running:
        yield running
