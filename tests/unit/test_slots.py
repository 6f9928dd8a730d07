"""The lock files of writers from Spark, in a folder where everybody may write: only they are removed."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from pgcombine.spark import slots

LOAD = "11111111-2222-3333-4444-555555555555"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The temporary folder; the name of the lock files' directory in it isn't taken."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def take(limit: int = 2) -> None:
    with slots._file_slot(LOAD, limit), slots._file_slot(LOAD, limit):
        pass


def old_file(path: Path) -> Path:
    path.write_text("precious")
    os.utime(path, (0, 0))
    return path


def test_files_are_made_and_removed(folder: Path) -> None:
    take()
    (directory,) = folder.iterdir()
    assert directory.stat().st_mode & 0o777 == 0o700
    assert sorted(file.name for file in directory.iterdir()) == [f"{LOAD}-0", f"{LOAD}-1"]
    left = old_file(directory / "another-load-0")
    take()
    assert not left.exists()
    slots.remove_files(LOAD)
    assert list(directory.iterdir()) == []


def test_a_link_is_not_followed(folder: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    precious = [old_file(elsewhere / "thesis"), old_file(elsewhere / f"{LOAD}-0")]
    (folder / f"pgcombine-slots-{os.geteuid()}").symlink_to(elsewhere)
    with pytest.raises(PermissionError, match="is no directory"):
        take()
    slots.remove_files(LOAD)
    assert [file.read_text() for file in precious] == ["precious"] * 2


def test_a_link_among_the_files_is_not_followed(folder: Path, tmp_path: Path) -> None:
    take()
    precious = old_file(tmp_path / "thesis")
    (next(folder.iterdir()) / f"{LOAD}-0").unlink()
    (next(folder.iterdir()) / f"{LOAD}-0").symlink_to(precious)
    with pytest.raises(OSError, match="symbolic links"):
        take()
    slots.remove_files(LOAD)
    assert precious.read_text() == "precious"


@pytest.mark.parametrize("mode", [0o777, 0o750])
def test_a_directory_of_others_is_refused(folder: Path, mode: int) -> None:
    directory = folder / f"pgcombine-slots-{os.geteuid()}"
    directory.mkdir()
    directory.chmod(mode)
    kept = old_file(directory / "another-load-0")
    with pytest.raises(PermissionError, match="not this user's alone"):
        take()
    assert kept.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_a_directory_that_another_user_made_is_refused(folder: Path) -> None:
    directory = folder / f"pgcombine-slots-{os.geteuid()}"
    directory.mkdir(mode=0o700)
    os.chown(directory, 65534, 65534)
    with pytest.raises(PermissionError, match="owner 65534"):
        take()
