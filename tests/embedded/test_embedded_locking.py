"""A lock of the embedded server ends with the last process that holds it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support import eventually

from pgcombine.embedded import locking
from pgcombine.errors import OperationalError

HOLD = """
import sys, time
from pathlib import Path
from pgcombine.embedded import locking
with locking.exclusive(Path(sys.argv[1]), timeout=5):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_lock_is_held_only_inside_its_block(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    assert not locking.held(lock)
    with locking.exclusive(lock, timeout=1):
        assert locking.held(lock)
    assert not locking.held(lock)


def test_lock_ends_with_a_killed_program(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(lock)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(OperationalError), locking.exclusive(lock, timeout=0):
            pass
        holder.kill()
        with locking.exclusive(lock, timeout=30):
            assert locking.held(lock)


def test_child_keeps_an_inherited_lock(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    with locking.exclusive(lock, timeout=1) as descriptor:
        child = subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE, pass_fds=[descriptor])
    with child:
        assert locking.held(lock)
        child.kill()
        child.wait()
        eventually(lambda: not locking.held(lock))


def test_checks_of_a_lock_do_not_count_as_holders(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    lock.touch()
    with lock.open() as looking:
        assert locking._try(looking.fileno(), locking.fcntl.LOCK_SH)
        assert not locking.held(lock)
