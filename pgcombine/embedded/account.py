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

# Says whether an account that isn't root can run $1, and write to the directory $2 if one is given.
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
            if _works(mapped, programs, data):
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
    runs = _reachable(account, programs)
    before = data.stat()
    account.give(data)
    if not _works(account, runs, data):
        Account(uid=before.st_uid, gid=before.st_gid).give(data)
        raise ConfigError(f"{runs.path('postgres')} can't be run as user {_name(uid)} in {data}")
    return account, runs


def _reachable(account: Account, programs: Programs) -> Programs:
    """``programs``, or a copy of them, that ``account`` can run. Raises ConfigError if there is no place."""
    if _works(account, programs):
        return programs
    reasons = []
    for parent in (Path("/var/cache/pgcombine"), Path(tempfile.gettempdir())):
        try:
            copied = installed.copy(programs, parent)
        except (OSError, ConfigError) as error:
            reasons.append(str(error))
            continue
        if _works(account, copied):
            return copied
        reasons.append(f"{copied.directory} can't be run")
    raise ConfigError(
        f"user {_name(account.uid)} can't run PostgreSQL from {programs.directory}, "
        f"nor from a copy: {'; '.join(reasons)}"
    )


def _works(account: Account, programs: Programs, data: Path | None = None) -> bool:
    """Whether PostgreSQL runs as ``account``, and can write to ``data`` if that is given."""
    command = [*account.prefix, "/bin/sh", "-c", _PROBE, "sh", programs.path("postgres")]
    if data:
        command.append(account.directory(data))
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=60,
            check=False,
            **account.options(data or Path("/")),
        )
    except (OSError, subprocess.SubprocessError, ValueError):
        return False
    return done.returncode == 0


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
