"""The directory of a server. It is created completely or not at all.

``postgres/`` in the home can have ``data/`` (PostgreSQL's own), ``password`` (the superuser's), ``owner-password`` (of
the role that owns the database), ``port``, ``alive.lock`` and ``run/`` (for the Unix socket). The directory is created
under another name and then renamed.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from pgcombine.embedded import account as accounts
from pgcombine.embedded import programs as installed
from pgcombine.embedded.account import Account
from pgcombine.embedded.programs import Programs
from pgcombine.errors import ConfigError

SUPERUSER = "pgcombine"
OWNER = "pgcombine_owner"
DATABASE = "pgcombine"
INITDB_TIMEOUT = 300  # seconds for each program that makes the data; initdb usually takes one second


@dataclass(frozen=True)
class Cluster:
    """A server's directory. It need not exist yet."""

    directory: Path

    @property
    def data(self) -> Path:
        return self.directory / "data"

    @property
    def alive(self) -> Path:
        return self.directory / "alive.lock"

    @property
    def exists(self) -> bool:
        return self.data.exists()

    def version(self) -> int | None:
        """Return the major version of PostgreSQL that made the data, or None if there are no data.

        Raises ConfigError if the data lack the file with the version.
        """
        try:
            return int((self.data / "PG_VERSION").read_text())
        except FileNotFoundError:
            if not self.exists:
                return None
            raise ConfigError(
                f"{self.data} is no data directory of PostgreSQL: PG_VERSION is missing; "
                f"restore it, or remove {self.directory} to begin with an empty database"
            ) from None

    def programs(self, asked: int | None) -> Programs:
        """Return PostgreSQL's programs for the data. For new data they are of version ``asked`` (None: the newest).

        Raises ConfigError if another version than ``asked`` made the data, or if the programs of the needed version
        aren't installed.
        """
        made_by = self.version()
        if made_by is None:
            return installed.find(asked)
        self.check_version(asked)
        there = installed.available()
        if made_by not in there:
            raise ConfigError(
                f"{self.data} was made by PostgreSQL {made_by}, whose programs are not installed (installed: "
                f"{', '.join(map(str, sorted(there)))}); install a release with these programs by "
                f"{installed.INSTALL}, or choose another directory with PGCOMBINE_HOME"
            )
        return there[made_by]

    def check_version(self, asked: int | None) -> None:
        """Raise ConfigError if another version than ``asked`` made the data."""
        made_by = self.version()
        if asked is not None and made_by is not None and asked != made_by:
            raise ConfigError(
                f"{self.data} was made by PostgreSQL {made_by}, and version {asked} is asked for; "
                f"use version {made_by}, or another directory (PGCOMBINE_HOME)"
            )

    @property
    def has_owner(self) -> bool:
        """Whether the database belongs to the role OWNER."""
        return (self.directory / "owner-password").exists()

    def password(self, file: str) -> str:
        """Return the content of ``password`` or ``owner-password``. Raises ConfigError if the file is missing."""
        path = self.directory / file
        try:
            return path.read_text().strip()
        except FileNotFoundError:
            raise ConfigError(
                f"{path} is missing, and the server's password with it; restore it, "
                f"or remove {self.directory} to begin with an empty database"
            ) from None

    def record(self, name: str, content: object) -> None:
        """Write ``content`` to the file ``name``: ``owner-password`` or ``port``."""
        fresh = self.directory / f"{name}.new"
        fresh.unlink(missing_ok=True)
        _private(fresh, f"{content}\n")
        fresh.replace(self.directory / name)

    def port(self) -> int | None:
        """Return the port of the last start, or None if no file has it."""
        try:
            return int((self.directory / "port").read_text())
        except (FileNotFoundError, ValueError):
            return None

    def size(self) -> int:
        """Return the size of the files in the data directory, in bytes. Files that this user can't list don't count."""
        total = 0
        for directory, _, files in os.walk(self.data):
            for name in files:
                try:
                    total += os.lstat(os.path.join(directory, name)).st_size
                except OSError:  # removed meanwhile
                    continue
        return total

    def clean(self) -> None:
        """Remove what is left of directories after a program was killed in :meth:`create` or :meth:`remove`."""
        for left in self.directory.parent.glob(f"{self.directory.name}.new-*"):
            # If initdb still writes into the directory, some files remain. The next start removes them.
            shutil.rmtree(left, ignore_errors=True)

    def remove(self) -> None:
        """Remove the directory if it exists. If the program is killed meanwhile, :meth:`clean` removes the rest."""
        if self.directory.exists():
            gone = Path(tempfile.mkdtemp(prefix=f"{self.directory.name}.new-", dir=self.directory.parent))
            self.directory.rename(gone / self.directory.name)
            shutil.rmtree(gone)
        self.clean()

    def create(self, programs: Programs, *, durable: bool = True) -> None:
        """Create the directory: a password, and data with an empty database. The caller holds the home's lock.

        With ``durable=False`` the call doesn't wait until the files are on disk. Raises ConfigError, with PostgreSQL's
        reason if its programs fail, or OSError.
        """
        staging = Path(tempfile.mkdtemp(prefix=f"{self.directory.name}.new-", dir=self.directory.parent))
        try:
            _fill(Cluster(staging), programs, durable)
            staging.rename(self.directory)
            if durable:
                _sync(self.directory.parent)
        except BaseException:
            shutil.rmtree(staging, ignore_errors=True)
            raise


def _private(path: Path, content: str) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(content)


def _fill(new: Cluster, programs: Programs, durable: bool) -> None:
    new.data.mkdir(mode=0o700)
    account, programs = accounts.choose(new.data, programs)
    password = new.directory / "password"
    _private(password, f"{secrets.token_hex(24)}\n")
    # The account can now enter this directory, but not list it, so that initdb can read the password beside the data.
    new.directory.chmod(0o711)
    account.give(password)
    locale = ["--locale=C"]  # sorts by bytes on every machine, regardless of its C library
    if programs.version >= 17:
        locale += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    directory = account.directory(new.data)
    initdb = ["initdb", "-D", directory, "-U", SUPERUSER, "-E", "UTF8", *locale]
    initdb += ["-A", "scram-sha-256", "--pwfile=../password", *([] if durable else ["--no-sync"])]
    _run(programs, account, new.data, initdb)
    single = ["postgres", "--single", "-D", directory, "-c", "exit_on_error=on"]
    single += ["-c", f"fsync={'on' if durable else 'off'}", "template1"]
    _run(programs, account, new.data, single, f'create database "{DATABASE}"\n')
    if account.uid is not None:
        os.chown(password, os.geteuid(), os.getegid())
    new.directory.chmod(0o700)


def _run(programs: Programs, account: Account, data: Path, command: list[str], text: str = "") -> None:
    name, *arguments = command
    try:
        done = subprocess.run(
            [*account.prefix, programs.path(name), *arguments],
            input=text,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment(),
            timeout=INITDB_TIMEOUT,
            check=False,
            start_new_session=True,
            **account.options(data),
        )
    except subprocess.TimeoutExpired as error:
        raise ConfigError(f"{name} took longer than {INITDB_TIMEOUT} s in {data}: check the disk") from error
    if done.returncode != 0:
        why = failure(done.stdout) or done.stdout.strip() or f"exit status {done.returncode}"
        raise ConfigError(f"{name} failed in {data}: {why}")


def environment() -> dict[str, str]:
    """Return the environment for PostgreSQL's programs: this process's, with the locale C and the time zone UTC.

    Variables whose names begin with PG are left out, since they would change what the programs do.
    """
    mine = {k: v for k, v in os.environ.items() if not k.startswith(("PG", "LC_")) and k != "LANG"}
    return mine | {"LC_ALL": "C", "TZ": "UTC"}


def failure(log: str) -> str | None:
    """Return the first line of the highest severity in PostgreSQL's log, without what precedes the severity.

    Returns None if no line has the severity of an error.
    """
    for mark in ("PANIC:", "FATAL:", "ERROR:", "error:"):
        for line in log.splitlines():
            if mark in line:
                return line[line.index(mark) :].strip()
    return None


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
