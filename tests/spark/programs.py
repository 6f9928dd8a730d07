"""``driver.py`` as another process, which a test can call and kill."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
from support import eventually
from support.cli import environment

from .frames import PARTS, ROWS

PROGRAM = Path(__file__).with_name("driver.py")


class Program:
    """A Spark driver for ``master``; its answers go to a file in ``directory``.

    The driver begins a call when ``executors`` executors run.
    """

    def __init__(
        self,
        directory: Path,
        master: str = "local[2,4]",
        settings: Mapping[str, str] | None = None,
        executors: int = 0,
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._answers, self._errors = directory / "answers", directory / "errors"
        self._told = 0
        with self._answers.open("w") as answers, self._errors.open("w") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-W", "error", PROGRAM, master, json.dumps(dict(settings or {})), str(executors)],
                env=environment(),
                stdin=subprocess.PIPE,
                stdout=answers,
                stderr=errors,
                text=True,
            )

    def write(
        self,
        sink: str,
        dsn: str,
        run_id: str | None = None,
        *,
        pause: Path | None = None,
        part: int | None = None,
        parts: int = 4,
        total: int = PARTS * ROWS,
        **options: object,
    ) -> None:
        """Begin to write the frame. With ``pause``, tasks of ``part`` (None: all) wait at a :class:`Pause`."""
        waiting = None if pause is None else str(pause)
        self._tell(
            sink=sink, dsn=dsn, run_id=run_id, pause=waiting, part=part, parts=parts, total=total, options=options
        )

    def error(self) -> str | None:
        """Wait for the end of the last call. Returns its error, or None."""
        answer = eventually(self._answer, timeout=240, what="the driver answers")
        error: str | None = answer["error"]
        return error

    def kill(self) -> None:
        """Kill the driver and its child processes with SIGKILL."""
        with suppress(psutil.NoSuchProcess):
            family = psutil.Process(self.process.pid)
            for process in [family, *family.children(recursive=True)]:
                with suppress(psutil.NoSuchProcess):
                    process.kill()
        self.process.wait()
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):
            self.process.stdin.close()

    def _tell(self, **call: object) -> None:
        assert self.process.stdin is not None
        print(json.dumps(call), file=self.process.stdin, flush=True)
        self._told += 1

    def _answer(self) -> dict[str, Any] | None:
        assert self.process.poll() is None, self._errors.read_text()
        lines = self._answers.read_text().splitlines(keepends=True)
        done = [line for line in lines if line.endswith("\n")]
        answer: dict[str, Any] | None = json.loads(done[-1]) if len(done) == self._told else None
        return answer
