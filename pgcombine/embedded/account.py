"""The account that PostgreSQL's programs run as.

PostgreSQL refuses to run as root. So root runs the server as an unprivileged account, and makes this account the owner
of the data directory. The data directory is the programs' working directory, since the account may be unable to reach
it by its path. If the account can't reach the programs, it runs a copy of them.

If root can't use such an account, or if this process's user has no name, the server runs in a user namespace in which
the user has another id. The namespace doesn't change rights to files. So if root starts a server in a namespace, the
server's superusers have root's rights to files, and the start logs a warning.
"""

from __future__ import annotations

import logging
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

log = logging.getLogger("pgcombine.embedded")

# Succeeds if the account isn't root, can run $1, and can write to the directory $2 if one is given.
_PROBE = 'test "$(id -u)" != 0 && { test -z "$2" || { test -w "$2" && test -x "$2"; }; } && exec "$1" --version'


@dataclass(frozen=True)
class Account:
    """How to start programs: as the user ``uid`` and the group ``gid``, with ``prefix`` before the command.

    If ``uid`` is None, programs run as this process's user.
    """

    prefix: tuple[str, ...] = ()
    uid: int | None = None
    gid: int | None = None

    def options(self, data: Path) -> dict[str, Any]:
        """Return arguments for :mod:`subprocess` that start a program in ``data`` as this account."""
        options: dict[str, Any] = {"cwd": data}
        if self.uid is not None:
            options |= {"user": self.uid, "group": self.gid, "extra_groups": []}
        return options

    def directory(self, data: Path) -> str:
        """Return the path by which a program that was started with :meth:`options` can open ``data``."""
        return str(data) if self.uid is None else "/proc/self/cwd"

    def give(self, path: Path) -> None:
        """Change the owner of ``path`` and all below it to this account, unless the account is this process's own.

        A process of the account can't redirect the change with a link in place of a directory: names are resolved
        relative to directories that are already open.
        """
        if self.uid is None or self.gid is None:
            return
        if path.is_dir():
            for _, directories, files, opened in os.fwalk(path):
                for name in (*directories, *files):
                    os.chown(name, self.uid, self.gid, dir_fd=opened, follow_symlinks=False)
        os.chown(path, self.uid, self.gid, follow_symlinks=False)


def choose(data: Path, programs: Programs) -> tuple[Account, Programs]:
    """Return the account for the data directory ``data``, and the programs that it can run.

    The directory exists, and is empty or has a server's data. If this process runs as root and root owns the directory,
    another account becomes the owner if possible. Raises ConfigError if no account works, or if this process doesn't
    run as root and the directory belongs to another user.
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
        if mapped := _mapped(data, programs):
            return mapped, programs
        raise ConfigError(
            f"PostgreSQL can't run as user {os.geteuid()}, which has no name here; "
            "add the user to /etc/passwd, or name another server with PGCOMBINE_DSN"
        )
    if owner.st_uid != 0:  # an ordinary user created the directory, or an earlier start gave it to an account
        return _other(data, programs, owner.st_uid, owner.st_gid)
    reasons = []
    for record in _unprivileged():
        try:
            return _other(data, programs, record.pw_uid, record.pw_gid)
        except (ConfigError, OSError) as error:
            reasons.append(f"{record.pw_name}: {error}")
    if mapped := _mapped(data, programs):
        log.warning("embedded.root reason=%s", "; ".join(reasons) or "there is no other account")
        return mapped, programs
    raise ConfigError(
        "PostgreSQL refuses to run as root, and no other account could be used "
        f"({'; '.join(reasons) or 'there is none'}); run as an ordinary user, or name another server "
        "with PGCOMBINE_DSN"
    )


def _mapped(data: Path, programs: Programs) -> Account | None:
    """Return an account for a user namespace in which this user has another id, or None if that doesn't work."""
    for record in _unprivileged():
        mapped = Account(prefix=("unshare", "--user", f"--map-user={record.pw_uid}", "--"))
        if not _refusal(mapped, programs.path("postgres"), data):
            return mapped
    return None


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
    """Return ``programs``, or a copy of them, that ``account`` can run."""
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
    """Return why ``account`` can't run ``program`` or write to ``data`` (if given), or None if the account can."""
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
    """Return those of the accounts postgres, nobody and daemon that exist and aren't root."""
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
