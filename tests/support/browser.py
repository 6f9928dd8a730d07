"""Control a headless Chromium through its DevTools protocol, over two pipes.

The protocol is described at https://chromedevtools.github.io/devtools-protocol. If the tests run as root, Chromium runs
without its sandbox.
"""

from __future__ import annotations

import base64
import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support.needs import require_program
from support.wait import eventually

# Chromium reads commands from file descriptor 3 and writes answers to file descriptor 4.
_START = """
import fcntl, os, sys
found = [fcntl.fcntl(int(number), fcntl.F_DUPFD, 10) for number in sys.argv[1:3]]
os.dup2(found[0], 3)
os.dup2(found[1], 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
_OPTIONS = (
    *("--headless", "--remote-debugging-pipe", "--no-first-run", "--disable-gpu", "--disable-dev-shm-usage"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-default-browser-check"),
    *("--hide-scrollbars", "--force-color-profile=srgb", "--no-proxy-server", "--lang=en-US"),
)


class Tab:
    """A tab of a browser, which shows one page at a time."""

    def __init__(self, browser: _Browser) -> None:
        self._browser = browser
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the protocol. Raises AssertionError with the browser's message if the call fails."""
        return self._browser.call(method, self._session, **parameters)

    def size(self, width: int, height: int = 900, *, dark: bool = False) -> None:
        """Set the size of the tab's window, and whether the page is asked for dark colours."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def open(self, url: str) -> None:
        """Open a page, and return when the page and all its resources are loaded."""
        self._browser.events.clear()
        opened = self.call("Page.navigate", url=url)
        assert "errorText" not in opened, opened
        self.loaded()

    def loaded(self) -> None:
        eventually(lambda: self.run("document.readyState") == "complete", what="the page is complete")

    def run(self, script: str) -> Any:
        """The value of an expression in JavaScript. If the value is a promise, the value that it resolves to.

        If the page changes meanwhile, the expression is evaluated again in the next page. Raises AssertionError if the
        expression throws.
        """

        def answered() -> dict[str, Any] | None:
            answer = self._browser.ask(
                "Runtime.evaluate", self._session, expression=script, returnByValue=True, awaitPromise=True
            )
            gone = "error" in answer and "context" in answer["error"]["message"].lower()
            return None if gone else answer

        answer = eventually(answered, what="the next page is there")
        assert "error" not in answer, answer
        assert "exceptionDetails" not in answer["result"], answer
        return answer["result"]["result"].get("value")

    def press(self, key: str) -> None:
        code, text = {"Tab": (9, ""), "Enter": (13, "\r")}[key]
        event = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **event)
        self.call("Input.dispatchKeyEvent", type="keyUp", **event)

    def picture(self, file: Path) -> None:
        data = self.call("Page.captureScreenshot", captureBeyondViewport=True)["data"]
        file.write_bytes(base64.b64decode(data))

    def complaints(self) -> list[str]:
        """Errors, messages of scripts on the console, and opened dialogs since ``open`` was called.

        Violations of the content policy are among the errors.
        """
        self.run("1")  # the answer to this call comes after all earlier events
        found = []
        for event in self._browser.events:
            parameters = event.get("params", {})
            if event["method"] == "Runtime.exceptionThrown":
                found.append(json.dumps(parameters["exceptionDetails"]))
            elif event["method"] == "Log.entryAdded" and parameters["entry"]["level"] == "error":
                found.append(parameters["entry"]["text"])
            elif event["method"] == "Runtime.consoleAPICalled":
                found.append(json.dumps(parameters["args"]))
            elif event["method"] == "Page.javascriptDialogOpening":
                found.append(parameters["message"])
        return found

    def requested(self) -> list[str]:
        """The URLs that the page requested since ``open`` was called."""
        self.run("1")
        sent = [event for event in self._browser.events if event["method"] == "Network.requestWillBeSent"]
        return [event["params"]["request"]["url"] for event in sent]


class _Browser:
    def __init__(self, commands: int, answers: int) -> None:
        self._commands = io.FileIO(commands, "wb")
        self._answers = io.FileIO(answers, "rb")
        self._read = b""
        self._number = 0
        self.events: list[dict[str, Any]] = []

    def call(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        answer = self.ask(method, session, **parameters)
        assert "error" not in answer, f"{method}: {answer['error']}"
        result: dict[str, Any] = answer["result"]
        return result

    def ask(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        self._commands.write(json.dumps(message).encode() + b"\0")
        while (answer := self._next()).get("id") != self._number:
            if "method" in answer:
                self.events.append(answer)
        return answer

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._read:
            part = self._answers.read(1 << 16)
            assert part, "the browser has ended"
            self._read += part
        message, _, self._read = self._read.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        return found

    def close(self) -> None:
        self._commands.close()
        self._answers.close()


@contextmanager
def browser(directory: Path) -> Iterator[Tab]:
    """Run a browser during the block, with its files in ``directory``. Yields a tab."""
    program = require_program("chromium")
    to_read, commands = os.pipe()
    answers, to_write = os.pipe()
    options = [*_OPTIONS, *(["--no-sandbox"] if os.geteuid() == 0 else []), f"--user-data-dir={directory}"]
    with (directory / "log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", _START, str(to_read), str(to_write), program, *options, "about:blank"],
            pass_fds=(to_read, to_write),
            env=os.environ | {"HOME": str(directory)},
            stdout=log,
            stderr=log,
        )
    os.close(to_read)
    os.close(to_write)
    found = _Browser(commands, answers)
    try:
        yield Tab(found)
        found.call("Browser.close")
    finally:
        found.close()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
