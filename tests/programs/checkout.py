"""Install a version of the product in a new environment. Nothing is downloaded.

``check_out`` and ``install`` raise ConfigError if the commit doesn't exist, ``install`` also if it can't be installed.
"""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pgcombine.errors import ConfigError

from .peers.contender import ROOT

WORKING_TREE = "."
_MAIN = "from pgcombine.cli import main; main()"


@dataclass(frozen=True)
class Environment:
    """An installed version. ``summary`` describes the commit or the working tree; ``tree`` has the sources."""

    name: str
    summary: str
    tree: Path
    python: Path

    def command(self, *arguments: str) -> list[str]:
        """Return the command that runs this version's ``pgcombine``, from any directory and with any ``PYTHONPATH``."""
        return [str(self.python), "-I", "-c", _MAIN, *arguments]

    def cli(self, *arguments: str) -> str:
        """Run this version's ``pgcombine`` and return what it prints. Raises ConfigError if it fails."""
        return _run(self.command(*arguments), self.tree)


def names(commits: Sequence[str]) -> list[str]:
    """Return a name for each commit: the commit itself, with " again" for each earlier one that is the same."""
    return [one + " again" * commits[:place].count(one) for place, one in enumerate(commits)]


def check_out(commit: str, tree: Path) -> str:
    """Write the files of a commit, or of the working tree, to a new directory. Returns a description."""
    tree.mkdir(parents=True)
    if commit == WORKING_TREE:
        for name in _git("ls-files", "-z", "--cached", "--others", "--exclude-standard").decode().split("\0"):
            if name and (ROOT / name).is_file():  # git also lists files that are missing from the working tree
                (tree / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, tree / name)
        return f"the working tree at {_git('describe', '--always', '--dirty').decode().strip()}"
    with tarfile.open(fileobj=io.BytesIO(_git("archive", "--format=tar", commit))) as archive:
        archive.extractall(tree, filter="data")
    return _git("log", "-1", "--format=%h of %as, %s", commit).decode().strip()


def install(commit: str, name: str, directory: Path) -> Environment:
    """Install a commit, or the working tree, in an empty directory."""
    tree = directory / "tree"
    summary = check_out(commit, tree)
    venv.create(directory / "venv", with_pip=False, symlinks=True)
    python = directory / "venv" / "bin" / "python"
    pip = (sys.executable, "-m", "pip")
    quietly = ("--quiet", "--disable-pip-version-check", "--no-deps", "--no-index")
    _run((*pip, "wheel", *quietly, "--no-build-isolation", "--wheel-dir", str(directory), str(tree)), directory)
    (wheel,) = directory.glob("*.whl")
    _run((*pip, "--python", str(python), "install", *quietly, str(wheel)), directory)
    # The .pth file appends the package directories of the running Python to the search path of the new environment.
    # Python ignores .pth files in appended directories, so the editable install of this checkout isn't imported.
    own = Path(_run((str(python), "-I", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"), directory))
    shared = dict.fromkeys(sysconfig.get_path(one) for one in ("purelib", "platlib"))
    (own / "shared.pth").write_text("\n".join(shared) + "\n")
    found = _run((str(python), "-I", "-c", "import pgcombine; print(pgcombine.__file__)"), directory)
    if not Path(found).is_relative_to(own):
        raise ConfigError(f"{commit} was installed in {own}, but {found} is imported")
    return Environment(name, summary, tree, python)


def _git(*arguments: str) -> bytes:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, check=False)
    if done.returncode:
        raise ConfigError(f"git {' '.join(arguments)}: {done.stderr.decode().strip()}")
    return done.stdout


def _run(command: Sequence[str], directory: Path) -> str:
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["no output"]
        raise ConfigError(f"{' '.join(command[:6])} … failed: {lines[-1]}")
    return done.stdout.strip()
