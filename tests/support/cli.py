"""Run the command line in another process.

``start_cli`` runs a command beside the test. ``run_cli`` waits until the command ends. To save time, it mostly forks a
process that has already imported the commands.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import sysconfig
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import IO, Any

TESTS = Path(__file__).parents[1]
SCRIPT = Path(sysconfig.get_path("scripts")) / "pgcombine"
# The fork server imports these modules before it forks. It skips a module that isn't installed.
PRELOADED = ["pytest", "pgcombine.cli.app", "pgcombine.schema", "pgcombine.worker.worker", "pydantic.main"]


def command(*args: object) -> list[str]:
    """The argument list that runs ``pgcombine ARGS`` with Python's warnings as errors."""
    return [sys.executable, "-W", "error", str(SCRIPT), *map(str, args)]


def environment(env: Mapping[str, object] | None = None) -> dict[str, str]:
    """This process's environment, with settings for reproducible output and with ``env``. None removes a variable."""
    merged = dict(os.environ)
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
    """Run ``pgcombine ARGS`` to its end and return the completed process, with its output as text.

    Raises subprocess.TimeoutExpired after ``timeout`` seconds.
    """
    arguments = command(*args)
    with tempfile.TemporaryDirectory() as directory:
        files = [Path(directory, name) for name in ("stdin", "stdout", "stderr")]
        files[0].write_text(input or "", encoding="utf-8")
        where = cwd or Path.cwd()
        if args[:1] == ("phrasecount",) or any(name.startswith("PYTHON") for name in env or {}):
            with files[0].open() as stdin, files[1].open("w") as stdout, files[2].open("w") as stderr:
                status = subprocess.run(
                    arguments,
                    env=environment(env),
                    stdin=stdin,
                    stdout=stdout,
                    stderr=stderr,
                    timeout=timeout,
                    cwd=where,
                    check=False,
                ).returncode
        else:
            process = _server().Process(target=_main, args=(arguments, environment(env), where, files))
            process.start()
            process.join(timeout)
            if process.exitcode is None:
                process.kill()
                process.join()
                raise subprocess.TimeoutExpired(arguments, timeout)
            status = process.exitcode
            process.close()
        return subprocess.CompletedProcess(arguments, status, *(file.read_text(encoding="utf-8") for file in files[1:]))


@cache
def _server() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    return context


def _main(arguments: list[str], env: dict[str, str], cwd: Path, files: list[Path]) -> None:
    """Act as the console script in the forked process."""
    for descriptor, file in enumerate(files):
        opened = os.open(file, os.O_RDWR | os.O_CREAT)
        os.dup2(opened, descriptor)
        os.close(opened)
    sys.stdin = os.fdopen(0, closefd=False)
    sys.argv = arguments[arguments.index(str(SCRIPT)) :]
    sys.path[:] = [str(SCRIPT.parent), *(path for path in sys.path if Path(path) != TESTS)]
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    warnings.simplefilter("error")

    from pgcombine.cli import main

    main()


@contextmanager
def start_cli(
    *args: object,
    env: Mapping[str, object] | None = None,
    stdout: int | IO[Any] | None = subprocess.PIPE,
    stderr: int | IO[Any] | None = subprocess.STDOUT,
    cwd: Path | None = None,
) -> Iterator[subprocess.Popen[str]]:
    """Run ``pgcombine ARGS`` beside the test. The end of the block kills the process if it still runs."""
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
