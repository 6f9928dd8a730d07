"""Which account PostgreSQL's programs run as.

PostgreSQL refuses to run as root. Root runs it in a user namespace where root has another number, which
changes nobody's rights to any file; where that is forbidden (most containers), as an unprivileged account that
is given the data directory. That account may be unable to reach the data directory by its path; it gets there
by its working directory instead. Where neither works, :class:`ConfigError` says so.
"""

from __future__ import annotations

import os
import pwd
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pgcombine.embedded import programs as installed
from pgcombine.embedded.programs import Programs
from pgcombine.errors import ConfigError

# Succeeds if an account that isn't root can run $1, and write to the directory $2 if one is given.
_PROBE = 'test "$(id -u)" != 0 && { test -z "$2" || { test -w "$2" && test -x "$2"; }; } && exec "$1" --version'


@dataclass(frozen=True)
class Account:
    """How programs are started: behind ``prefix``, or as user ``uid`` of group ``gid``, or simply."""

    prefix: tuple[str, ...] = ()
    uid: int | None = None
    gid: int | None = None

    def options(self, data: Path) -> dict[str, Any]:
        """Arguments for :mod:`subprocess` that start a program in ``data`` as this account."""
        options: dict[str, Any] = {"cwd": data}
        if self.uid is not None:
            options |= {"user": self.uid, "group": self.gid, "extra_groups": []}
        return options

    def directory(self, data: Path) -> str:
        """``data`` as a program started with :meth:`options` names it."""
        return str(data) if self.uid is None else "/proc/self/cwd"

    def give(self, path: Path) -> None:
        """Make ``path`` and all below it this account's, if it isn't the one that runs this."""
        if self.uid is None or self.gid is None:
            return
        os.chown(path, self.uid, self.gid, follow_symlinks=False)
        for directory, directories, files in os.walk(path):
            for name in (*directories, *files):
                os.chown(Path(directory, name), self.uid, self.gid, follow_symlinks=False)


def choose(data: Path, programs: Programs) -> tuple[Account, Programs]:
    """The account for the data directory ``data`` and the programs it can run.

    ``data`` is there, and empty or a server's. It is given to the account if root owned it and PostgreSQL
    can't run so. Raises ConfigError if it belongs to another user, or if no account will do.
    """
    owner = data.stat()
    if os.geteuid() != 0:
        if owner.st_uid != os.geteuid():
            raise ConfigError(
                f"{data} belongs to the user {_name(owner.st_uid)}; "
                "run as that user, or choose another directory with PGCOMBINE_HOME"
            )
        if _known(os.geteuid()):
            return Account(), programs
    if owner.st_uid == os.geteuid():
        for number in _unprivileged():
            mapped = Account(prefix=("unshare", "--user", f"--map-user={number.pw_uid}", "--"))
            if not _refusal(mapped, programs.path("postgres"), data):
                return mapped, programs
    if os.geteuid() != 0:
        raise ConfigError(
            f"PostgreSQL can't run as user {os.geteuid()}, which has no name here; "
            "add the user to /etc/passwd, or give a server of your own with PGCOMBINE_DSN"
        )
    if owner.st_uid != 0:  # made by, or already given to, an ordinary user
        return _other(data, programs, owner.st_uid, owner.st_gid)
    reasons = []
    for record in _unprivileged():
        try:
            return _other(data, programs, record.pw_uid, record.pw_gid)
        except (ConfigError, OSError) as error:
            reasons.append(f"{record.pw_name}: {error}")
    raise ConfigError(
        "PostgreSQL refuses to run as root, and no other account could be used "
        f"({'; '.join(reasons) or 'there is none'}); run as an ordinary user, or give a server of your own "
        "with PGCOMBINE_DSN"
    )


def _other(data: Path, programs: Programs, uid: int, gid: int) -> tuple[Account, Programs]:
    account = Account(uid=uid, gid=gid)
    refused = _refusal(account, "/bin/true")
    if refused:
        raise ConfigError(f"root can't become user {_name(uid)} here: {refused}")
    runs = _reachable(account, programs)
    before = data.stat()
    account.give(data)
    refused = _refusal(account, runs.path("postgres"), data)
    if refused:
        Account(uid=before.st_uid, gid=before.st_gid).give(data)
        raise ConfigError(f"user {_name(uid)} can't run PostgreSQL in {data}: {refused}")
    return account, runs


def _reachable(account: Account, programs: Programs) -> Programs:
    """``programs``, or a copy of them, that ``account`` can run. Raises ConfigError if there is no place."""
    refused = _refusal(account, programs.path("postgres"))
    if not refused:
        return programs
    reasons = [f"{programs.directory}: {refused}"]
    for parent in (Path("/var/cache/pgcombine"), Path(tempfile.gettempdir())):
        try:
            copied = installed.copy(programs, parent)
        except (OSError, ConfigError) as error:
            reasons.append(str(error))
            continue
        refused = _refusal(account, copied.path("postgres"))
        if not refused:
            return copied
        reasons.append(f"{copied.directory}: {refused}")
    raise ConfigError(f"user {_name(account.uid)} can't run PostgreSQL from {'; '.join(reasons)}")


def _refusal(account: Account, program: str, data: Path | None = None) -> str | None:
    """Why ``program`` doesn't run as ``account``, or can't write to ``data``; None if it does."""
    command = [*account.prefix, "/bin/sh", "-c", _PROBE, "sh", program]
    if data:
        command.append(account.directory(data))
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=60,
            check=False,
            **account.options(data or Path("/")),
        )
    except OSError as error:
        return error.strerror or str(error)
    except subprocess.SubprocessError as error:
        return str(error)
    if done.returncode == 0:
        return None
    lines: list[str] = done.stderr.strip().splitlines()
    return lines[-1] if lines else "it isn't allowed to"


def _unprivileged() -> list[pwd.struct_passwd]:
    """Accounts to run PostgreSQL as, those meant for such things only."""
    records = []
    for name in ("postgres", "nobody", "daemon"):
        try:
            records.append(pwd.getpwnam(name))
        except KeyError:
            continue
    return [record for record in records if record.pw_uid != 0]


def _known(uid: int) -> bool:
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return False
    return True


def _name(uid: int | None) -> str:
    return pwd.getpwuid(uid).pw_name if uid is not None and _known(uid) else str(uid)
