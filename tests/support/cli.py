"""The command line as its users run it: the installed console script, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

SCRIPT = Path(sysconfig.get_path("scripts")) / "pgcombine"


def command(*args: object) -> list[str]:
    """The argument list that runs ``pgcombine ARGS``; Python's warnings are errors in it, as in the tests."""
    return [sys.executable, "-W", "error", str(SCRIPT), *map(str, args)]


def environment(env: Mapping[str, object] | None = None) -> dict[str, str]:
    """This process's environment with ``env`` on top; a value of None takes a variable out."""
    merged = dict(os.environ)
    # A line of an error or a table must not break where the terminal of whoever runs the tests ends.
    merged.update(COLUMNS="200", NO_COLOR="1", PYTHONUNBUFFERED="1")
    for name, value in (env or {}).items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = str(value)
    return merged


def run_cli(
    *args: object,
    env: Mapping[str, object] | None = None,
    input: str | None = None,
    timeout: float = 120.0,
    cwd: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run ``pgcombine ARGS`` to its end; the caller looks at ``returncode``, ``stdout`` and ``stderr``.

    ``timeout`` is in seconds; subprocess.TimeoutExpired is raised after it.
    """
    return subprocess.run(
        command(*args),
        env=environment(env),
        input=input,
        stdin=subprocess.DEVNULL if input is None else None,
        capture_output=True,
        text=True,
        timeout=timeout,
        cwd=cwd,
        check=False,
    )


@contextmanager
def start_cli(
    *args: object,
    env: Mapping[str, object] | None = None,
    stdout: int | IO[Any] | None = subprocess.PIPE,
    stderr: int | IO[Any] | None = subprocess.STDOUT,
    cwd: Path | None = None,
) -> Iterator[subprocess.Popen[str]]:
    """``pgcombine ARGS`` running beside the test; killed at the end of the block if it still runs."""
    process = subprocess.Popen(
        command(*args),
        env=environment(env),
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=stderr,
        text=True,
        cwd=cwd,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()
