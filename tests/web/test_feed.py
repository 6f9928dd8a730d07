"""Feeds as server-sent events: a client gets each change once, also after it connects again."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import psycopg
import pytest
from support import eventually
from support.needs import require
from support.queues import combine, expire, make_queue, one
from support.roles import Roles, as_role
from support.servers import embedded_only
from support.site import address, read, served

from pgcombine.web import feeds

pytestmark = embedded_only
PAGE = Path(__file__).parents[2] / "pgcombine" / "docs" / "web.md"
TOKEN = "a token of some length"
Event = dict[str, str]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "POLL_SECONDS", 0.02)


@pytest.fixture
def feed(conn: psycopg.Connection) -> psycopg.Connection:
    make_queue(conn)
    conn.execute("select pgcombine.create_feed('f', 'wc', retention => '1 min')")
    return conn


@contextmanager
def events(client: httpx2.Client, last: str | None = None, **parameters: str) -> Iterator[Iterator[Event]]:
    """Open a stream, and yield its events. An event is a dict of its fields; a comment is a field without a name."""
    headers = {} if last is None else {"Last-Event-ID": last}
    with client.stream("GET", "/feeds/f", params=parameters, headers=headers) as answer:
        assert answer.status_code == 200, answer.read()
        assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert answer.headers["cache-control"] == "no-store"
        yield parsed(answer.iter_lines())


def parsed(lines: Iterator[str]) -> Iterator[Event]:
    event: Event = {}
    for line in lines:
        if line:
            name, _, value = line.partition(": ")
            event[name] = value
        else:
            yield event
            event = {}


def shown(event: Event) -> list[Any]:
    change = json.loads(event["data"])
    return [event["event"], change["_change_type"], change["word"], change["old_n"], change["new_n"]]


def test_client_gets_the_changes_from_now_on(feed: psycopg.Connection, dsn: str) -> None:
    combine(feed, {"a": 1})
    with served(dsn) as client, events(client) as found:
        begin = next(found)
        assert json.loads(begin["id"]) == one(feed, "select pgcombine_internal.feed_offset('f')")
        combine(feed, {"a": 1}, {"a": -2})
        assert shown(next(found)) == ["change", "update", "a", 1, 2]
        assert shown(next(found)) == ["change", "delete", "a", 2, None]


def test_client_that_connects_again_misses_nothing(
    feed: psycopg.Connection, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feeds, "MOST_CHANGES", 7)
    combine(feed, *({f"w{n}": 1 for n in range(10)} for _ in range(3)))
    seen: list[tuple[int, int]] = []
    last = None
    with served(dsn) as client:
        for count in (1, 5, 9, 15):
            with events(client, last, after="{}") as found:
                next(found)
                for _ in range(count):
                    event = next(found)
                    change = json.loads(event["data"])
                    seen.append((change["_bucket"], change["_sequence"]))
                    last = event["id"]
    assert len(seen) == len(set(seen)) == 30
    assert json.loads(last or "") == one(feed, "select pgcombine_internal.feed_offset('f')")
    for bucket in range(4):
        numbers = [sequence for one_bucket, sequence in seen if one_bucket == bucket]
        assert numbers == sorted(numbers)


def test_offset_that_is_too_old_is_refused(feed: psycopg.Connection, dsn: str) -> None:
    start = one(feed, "select pgcombine_internal.feed_offset('f')::text")
    combine(feed, {"a": 1})
    expire(feed)
    with served(dsn) as client:
        answer = client.get("/feeds/f", headers={"Last-Event-ID": start})
    assert answer.status_code == 410
    assert "read it all again" in read(answer).text


def test_offset_that_becomes_too_old_ends_the_stream(
    feed: psycopg.Connection, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Changes are made and truncated after the stream's offset is known, and before the stream reads them."""
    begun = feeds._events

    def late(site: Any, wanted: Any, after: feeds.Offset) -> Any:
        combine(feed, {"a": 1})
        expire(feed)
        return begun(site, wanted, after)

    monkeypatch.setattr(feeds, "_events", late)
    with served(dsn) as client, events(client) as found:
        next(found)
        (event,) = found
    assert event["event"] == "error"
    assert "id" not in event
    assert json.loads(event["data"])["sqlstate"] == "PC051"
    assert "read it all again" in json.loads(event["data"])["message"]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/feeds/none", 404),
        ("/feeds/f?after=x", 400),
        ("/feeds/f?after=[]", 400),
        pytest.param("/feeds/f?after=" + "[" * 9000, 400, id="nested"),
        ('/feeds/f?after={"0":NaN}', 400),
        ('/feeds/f?after={"%5Cu0000":1}', 400),
        ('/feeds/f?after={"9":1}', 409),
        ('/feeds/f?after={"0":1234567890123456789}', 409),
    ],
)
def test_wrong_request_is_refused(feed: psycopg.Connection, dsn: str, path: str, status: int) -> None:
    with served(dsn) as client:
        assert client.get(path).status_code == status
        assert client.head("/feeds/f").status_code == 200


def test_stream_needs_the_token(feed: psycopg.Connection, dsn: str) -> None:
    with served(dsn, token=TOKEN) as client:
        assert client.get("/feeds/f").status_code == 303
        assert client.get("/feeds/f", headers={"Authorization": "Bearer x"}).status_code == 401
        assert client.get("/feeds/f", headers={"Host": "evil.example"}).status_code == 421
        with client.stream("GET", "/feeds/f", headers={"Authorization": f"Bearer {TOKEN}"}) as answer:
            assert answer.status_code == 200


def test_stream_needs_only_the_right_to_read(feed: psycopg.Connection, dsn: str, roles: Roles) -> None:
    role = roles.login().info.user
    with served(as_role(dsn, role)) as client:
        for path in ("/feeds/f", "/feeds/f?after={}"):
            refused = client.get(path)
            assert refused.status_code == 403
            assert f'role "{role}" lacks the right read on queue "wc"' in read(refused).text
            assert f"select pgcombine.grant_right('read', '{role}', 'wc')" in read(refused).text
        feed.execute("select pgcombine.grant_right('read', %s, 'wc')", (role,))
        combine(feed, {"a": 1})
        with events(client, after="{}") as found:
            next(found)
            assert shown(next(found)) == ["change", "insert", "a", None, 1]


def test_streams_leave_room_for_pages(feed: psycopg.Connection, dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "MOST_STREAMS", 8)
    with served(dsn) as client:
        with ExitStack() as stack:
            streams = [stack.enter_context(events(client)) for _ in range(8)]
            for found in streams:
                next(found)
            assert client.get("/feeds/f").status_code == 503
            assert client.get("/queues/wc").status_code == 200
            combine(feed, {"a": 1})
            assert [shown(next(found))[2] for found in streams] == ["a"] * 8
        # the server notices that the clients are gone
        eventually(lambda: client.head("/feeds/f").status_code == 200, timeout=30, what="streams have ended")


def test_silent_stream_has_heartbeats_and_ends(
    feed: psycopg.Connection, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feeds, "HEARTBEAT_SECONDS", 0.01)
    monkeypatch.setattr(feeds, "STREAM_SECONDS", 1.0)
    with served(dsn) as client, events(client) as found:
        _, *beats = found
    assert {"": "nothing new"} in beats


def test_stream_ends_with_the_server(feed: psycopg.Connection, dsn: str, caplog: pytest.LogCaptureFixture) -> None:
    with ExitStack() as stack:
        with served(dsn) as client:
            whole = httpx2.stream("GET", f"{address(client)}/feeds/f", timeout=60, trust_env=False)
            found = parsed(stack.enter_context(whole).iter_lines())
            next(found)
        assert list(found) == []
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []


def test_command_of_the_page_works(feed: psycopg.Connection, dsn: str) -> None:
    require("curl", there=shutil.which("curl") is not None)
    feed.execute("select pgcombine.drop_feed('f'), pgcombine.create_feed('wc_feed', 'wc')")
    begin = one(feed, "select pgcombine_internal.feed_offset('wc_feed')::text")
    commands = re.findall(r"^curl .*?(?=\s+#)", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(commands) == 2
    with served(dsn) as client:
        for command in commands:
            known = command.replace("http://127.0.0.1:8432", address(client)).replace('{"0": 3, "1": 7}', begin)
            with subprocess.Popen([*shlex.split(known), "-sS"], stdout=subprocess.PIPE, text=True) as process:
                assert process.stdout is not None
                found = parsed(line.rstrip("\n") for line in process.stdout)
                next(found)
                combine(feed, {"a": 1})
                assert shown(next(found))[3:] == [None, 1]  # the second command gets the first change again
                process.terminate()
