"""Entries are delivered by the exporters ``files`` and ``webhook``, by functions, and by exporter classes.

Some errors mean that the destination refuses an entry. Others mean that the destination is down.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import ClassVar

import psycopg
import pytest
from support import eventually, run_cli
from support.exports import impatient, make_exported, state
from support.queues import combine, one
from support.receiver import Receiver
from support.roles import Roles, as_role
from support.servers import embedded_only

from pgcombine import Entry, ExportWorker
from pgcombine.errors import ConfigError, DestinationDownError, ExportNotFoundError, FencedError, WaitTimeoutError
from pgcombine.export.webhook import WebhookExporter

pytestmark = embedded_only


def lines(directory: Path) -> list[dict[str, object]]:
    return [json.loads(line) for file in sorted(directory.glob("*.jsonl")) for line in file.read_text().splitlines()]


def test_files_receive_entries(conn: psycopg.Connection, dsn: str, tmp_path: Path) -> None:
    make_exported(conn, exporter="files", target=str(tmp_path / "out"), buckets=1)
    impatient(conn)
    combine(conn, {"a": 1, "b": 2})
    with pytest.raises(DestinationDownError, match="No such file or directory"):
        ExportWorker(dsn, "search").drain()
    (tmp_path / "out").mkdir()
    conn.execute("select pgcombine.resume_export('search')")
    assert ExportWorker(dsn, "search").drain() == 2
    assert [(line["word"], line["old_n"], line["new_n"]) for line in lines(tmp_path / "out")] == [
        ("a", None, 1),
        ("b", None, 2),
    ]
    assert [file.suffix for file in (tmp_path / "out").iterdir()] == [".jsonl"]


def test_webhook_receives_entries(conn: psycopg.Connection, dsn: str, receiver: Receiver) -> None:
    make_exported(conn, exporter="webhook", target=receiver.url, buckets=1)
    impatient(conn)
    combine(conn, {"a": 1, "b": 2, "poison": 3})
    for status in (503, 429, 401):
        receiver.answer = lambda body, headers: status  # noqa: B023
        with pytest.raises(DestinationDownError, match=str(status)):
            ExportWorker(dsn, "search").drain()
        conn.execute("select pgcombine.resume_export('search')")
    # the three attempts sent the same batch
    assert len({headers["idempotency-key"] for headers, _ in receiver.asked}) == 1
    accepted: list[str] = []

    def refuse_poison(body: bytes, headers: dict[str, str]) -> int:
        words = [entry["word"] for entry in json.loads(body)["entries"]]
        if "poison" in words:
            return 422
        accepted.extend(words)
        return 200

    receiver.answer = refuse_poison
    ExportWorker(dsn, "search").drain()
    assert sorted(accepted) == ["a", "b"]
    held = conn.execute("select entry->>'word', error from pgcombine.export_entry").fetchall()
    assert [(word, error[:8]) for word, error in held] == [("poison", "HTTP 422")]
    assert state(conn) == "up"


def test_webhook_without_a_server_is_unreachable(conn: psycopg.Connection, receiver: Receiver) -> None:
    with pytest.raises(DestinationDownError):
        WebhookExporter("http://127.0.0.1:1/", "search").deliver([Entry("a", None, 1, 1, "{}")])


def test_function_receives_entries(conn: psycopg.Connection, dsn: str) -> None:
    make_exported(conn, buckets=1, batch=4)
    seen: dict[str, Entry] = {}
    failures = [ConnectionRefusedError("not yet"), TimeoutError("slow")]

    def deliver(entries: list[Entry]) -> None:
        if failures:
            raise failures.pop()
        assert len(entries) <= 4
        if any(entry.key == "poison" for entry in entries):
            raise ValueError("poison")
        seen.update({entry.key: entry for entry in entries})

    impatient(conn, down_after=5)
    combine(conn, {f"w{number}": number + 1 for number in range(20)} | {"poison": 1})
    assert ExportWorker(dsn, "search", deliver, poll=0.01).drain() == 21
    assert {key: (entry.old, entry.new) for key, entry in seen.items()} == {
        f"w{number}": (None, number + 1) for number in range(20)
    }
    assert conn.execute("select entry->>'word', error from pgcombine.export_entry").fetchall() == [
        ("poison", "ValueError: poison")
    ]


def test_drain_ends_in_time_beside_new_entries(conn: psycopg.Connection, dsn: str) -> None:
    make_exported(conn)

    def deliver(entries: list[Entry]) -> None:
        combine(conn, {"more": 1})

    deliver([])
    with pytest.raises(WaitTimeoutError):
        ExportWorker(dsn, "search", deliver).drain(0.5)


@pytest.mark.parametrize("claims", [False, True])
def test_worker_that_can_not_record_the_new_owner_rests(conn: psycopg.Connection, dsn: str, claims: bool) -> None:
    """The worker has only the right to export, or this server claims the same epoch. So the worker records a failure.

    Once the new owner is recorded, the destination is up.
    """
    make_exported(conn)
    impatient(conn)
    combine(conn, {"a": 1})

    def deliver(entries: list[Entry]) -> None:
        raise FencedError("server b owns the export", owner="b", epoch=2)

    with Roles(conn, dsn) as roles:
        role = roles.login().info.user
        conn.execute("select pgcombine.grant_right('work', %s)", (role,))
        if claims:
            conn.execute("update pgcombine.export set owner = 'a', epoch = 2")
        with pytest.raises(DestinationDownError):
            ExportWorker(dsn if claims else as_role(dsn, role), "search", deliver, poll=0.01).drain(30)
    assert one(conn, "select pgcombine_internal.disown_export('search', 'b', 3)")
    assert one(conn, "select state from pgcombine.destination where name = 'search'") == "up"


class Shelf:
    """A user's exporter, which refuses keys that begin with ``poison``."""

    made: ClassVar[list[tuple[str | None, str]]] = []
    entries: ClassVar[list[Entry]] = []
    closed = 0

    def __init__(self, target: str | None, export: str) -> None:
        self.made.append((target, export))

    def deliver(self, entries: Sequence[Entry]) -> None:
        if any(entry.key.startswith("poison") for entry in entries):
            raise ValueError("poison")
        self.entries.extend(entries)

    def close(self) -> None:
        Shelf.closed += 1


@pytest.fixture
def installed_shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Install a package with an entry point for the class Shelf. Return the entry point's name."""
    package = tmp_path / "shelf-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: shelf\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text("[pgcombine.exporters]\nshelf = shelf_exporter:Shelf\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    module = ModuleType("shelf_exporter")
    module.Shelf = Shelf  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "shelf_exporter", module)
    return "shelf"


def test_each_loop_makes_an_exporter(conn: psycopg.Connection, dsn: str, installed_shelf: str) -> None:
    make_exported(conn, target="shelf 7")
    refused = "select count(*) from pgcombine.export_entry"
    for number, exporter in enumerate([Shelf, installed_shelf]):
        Shelf.made.clear()
        Shelf.entries.clear()
        Shelf.closed = 0
        combine(conn, {"fluo": 1, f"poison{number}": 1})
        with ExportWorker(dsn, "search", exporter=exporter, concurrency=2, poll=0.01):
            eventually(lambda: [entry.key for entry in Shelf.entries] == ["fluo"])
            eventually(lambda expected=number + 1: one(conn, refused) == expected)
        assert Shelf.made == [("shelf 7", "search")] * 3  # one at the start as a check, and one for each loop
        assert Shelf.closed >= 3
    with pytest.raises(ConfigError, match=r'"kafka".* shelf'):
        ExportWorker(dsn, "search", exporter="kafka")
    found = run_cli("export", "run", "search", "--drain", "--app", "kafka", "--dsn", dsn)
    assert (found.returncode, 'has an exporter "kafka"' in found.stderr) == (1, True)


def test_worker_refuses_wrong_settings(conn: psycopg.Connection, dsn: str) -> None:
    make_exported(conn)
    with pytest.raises(ConfigError, match="delivers to Python: give a function or an exporter"):
        ExportWorker(dsn, "search").run(threading.Event())
    with pytest.raises(ExportNotFoundError):
        ExportWorker(dsn, "other").run(threading.Event())
    with pytest.raises(ConfigError):
        ExportWorker(dsn, "search", concurrency=0)
