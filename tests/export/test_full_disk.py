"""Files on a full disk: no entry is lost, and no reader sees a half-written file."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from support.exports import impatient, make_exported, state, waiting
from support.needs import does_not_apply
from support.queues import combine, one, values
from support.servers import embedded_only
from support.sessions import in_background
from support.wait import eventually

from pgcombine import ExportWorker

pytestmark = embedded_only


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 128 KiB."""
    directory = tmp_path / "disk"
    directory.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", directory], capture_output=True)
    if made.returncode != 0:
        does_not_apply("this account may not mount a file system")
    yield directory
    subprocess.run(["umount", directory], check=True)


def read(directory: Path) -> dict[str, int]:
    """Each word's newest value in the complete files, whose names end in ``.jsonl``."""
    entries = [json.loads(line) for file in directory.glob("*.jsonl") for line in file.read_text().splitlines()]
    return {entry["word"]: entry["new_n"] for entry in sorted(entries, key=lambda entry: entry["seq"])}


@pytest.mark.slow
def test_full_disk_loses_no_entry(conn: psycopg.Connection, dsn: str, disk: Path) -> None:
    make_exported(conn, exporter="files", target=str(disk), batch=300, buckets=1)
    impatient(conn, down_after=3, backoff="1 ms")
    combine(conn, {f"w{number:04}": number + 1 for number in range(3000)})
    stop = threading.Event()
    worker = ExportWorker(dsn, "search")
    with in_background(lambda: worker.run(stop)):
        try:
            eventually(lambda: state(conn) == "down")
            assert "No space left on device" in str(one(conn, "select reason from pgcombine.destination"))
            complete = read(disk)
            assert 0 < len(complete) < 3000
            assert waiting(conn) == 3000 - len(complete)
            subprocess.run(["mount", "-o", "remount,size=8m", disk], check=True)
            conn.execute("select pgcombine.resume_export('search')")
            eventually(lambda: waiting(conn) == 0)
        finally:
            stop.set()
    assert read(disk) == values(conn)
    assert {file.suffix for file in disk.iterdir()} == {".jsonl"}  # failed writes left no file
