"""The command line's promises: exit status, one line on stderr, JSON alone on stdout, all of a file or nothing."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pytest
import typer
from support import eventually, run_cli, start_cli
from support.queues import add, combine_all, current, make_queue, one, rows
from support.servers import Server, embedded_only

from pgcombine.cli.app import app

pytestmark = embedded_only


class Done(NamedTuple):
    status: int
    out: str
    err: str


class Cli:
    """The command line in this process: starting another takes a second each time."""

    def __init__(self, dsn: str, capsys: pytest.CaptureFixture[str]) -> None:
        self.dsn = dsn
        self.capsys = capsys

    def __call__(self, *args: object) -> Done:
        with pytest.raises(SystemExit) as ended:
            app([*map(str, args), "--dsn", self.dsn])
        return Done(int(ended.value.code or 0), *self.capsys.readouterr())

    def json(self, *args: object) -> Any:
        done = self(*args, "--json")
        assert (done.status, done.err) == (0, ""), done
        return json.loads(done.out)

    def fails(self, *args: object) -> str:
        """The one line on stderr of a command that fails, with and without --json."""
        lines = set()
        for done in (self(*args), self(*args, "--json")):
            assert (done.status, done.out) == (1, ""), done
            assert len(done.err.splitlines()) == 1, done.err
            assert done.err.startswith("pgcombine: ")
            lines.add(done.err)
        return lines.pop()


@pytest.fixture
def cli(dsn: str, capsys: pytest.CaptureFixture[str]) -> Cli:
    return Cli(dsn, capsys)


def test_every_verb_has_json_and_a_database(server: Server) -> None:
    def leaves(command: Any, path: str = "") -> Iterator[tuple[str, set[str]]]:
        for name, below in getattr(command, "commands", {}).items():
            yield from leaves(below, f"{path} {name}")
        if not hasattr(command, "commands"):
            yield path.strip(), {option for parameter in command.params for option in parameter.opts}

    options = dict(leaves(typer.main.get_command(app)))
    assert len(options) > 20
    assert [verb for verb, there in options.items() if "--json" not in there] == []
    without = [verb for verb, there in options.items() if "--dsn" not in there]
    # bench handoff makes servers of its own
    assert [verb for verb in without if not verb.startswith("server ") and verb != "bench handoff"] == []


def test_a_queues_life_in_json(cli: Cli, conn: psycopg.Connection) -> None:
    create = ("queue", "create", "wc", "--key", "word text", "--value", "n bigint sum")
    made = cli.json(*create, "--delete-when", "n = 0", "--buckets", 2)
    assert made == {"queue": "wc", "state": "created"}
    (listed,) = cli.json("queue", "ls")
    assert {key: listed[key] for key in ("queue", "key", "value", "buckets", "paused")} == {
        "queue": "wc",
        "key": ["word text"],
        "value": ["n bigint sum"],
        "buckets": 2,
        "paused": False,
    }
    shown = cli.json("queue", "show", "wc")
    assert shown["delete_when"] == "(n = 0)"
    assert "wc_updates_b0000" in shown["combine_sql"]
    add(conn, {"a": 3, "b": 5, "c": 4})
    (status,) = cli.json("status")["queues"]
    assert (status["queue"], status["backlog"], len(status["buckets"])) == ("wc", 3, 2)
    assert sum(bucket["backlog"] for bucket in status["buckets"]) == 3
    assert cli.json("get", "wc", "a", "absent", "b") == [{"word": "a", "n": 3}, {"word": "b", "n": 5}] or (
        sorted(row["word"] for row in cli.json("get", "wc", "a", "absent", "b")) == ["a", "b"]
    )
    assert cli.json("drain", "wc")["updates"] == 3
    assert cli.json("top", "wc", "--by", "n", "-n", 2) == [{"word": "b", "n": 5}, {"word": "c", "n": 4}]
    assert cli.json("queue", "pause", "wc")["state"] == "paused"
    assert cli.json("queue", "resume", "wc")["state"] == "resumed"
    assert cli.json("queue", "drop", "wc", "--yes")["state"] == "dropped"
    assert cli.json("queue", "ls") == []


def test_what_fails_says_so_in_one_line(cli: Cli, conn: psycopg.Connection, tmp_path: Path) -> None:
    make_queue(conn)
    add(conn, {"a": 1})
    (tmp_path / "one.jsonl").write_text('{"word": "a"}\n')
    create = ("queue", "create")
    cases: dict[tuple[object, ...], str] = {
        (*create, "WC", "--key", "word text", "--value", "n int sum"): "invalid queue name 'WC' (a to z",
        (*create, "wc", "--key", "word text", "--value", "n int sum"): 'queue "wc" exists (drop it first',
        (*create, "q", "--key", "word txet", "--value", "n int sum"): 'unknown type "txet"',
        (*create, "q", "--key", "word text", "--value", "n int sum", "--buckets", 0): "invalid number of buckets: 0",
        ("queue", "drop", "wc", "--yes"): 'queue "wc" has 1 pending updates (drain it first',
        ("queue", "show", "cw"): 'there is no queue "cw"',
        ("queue", "pause", "cw"): 'there is no queue "cw"',
        ("get", "cw", "a"): 'there is no queue "cw"',
        ("top", "cw", "--by", "n"): 'there is no queue "cw"',
        ("drain", "cw"): 'there is no queue "cw"',
        ("enqueue", "cw", tmp_path / "one.jsonl"): 'there is no queue "cw"',
        ("enqueue", "wc", tmp_path / "none.jsonl"): "No such file or directory",
        ("enqueue", "wc", tmp_path): "Is a directory",
    }
    for arguments, message in cases.items():
        assert message in cli.fails(*arguments), arguments


def test_a_database_that_cannot_be_reached(cli: Cli, empty_dsn: str) -> None:
    cli.dsn = "postgresql://nobody@127.0.0.1:1/none"
    assert "can't connect to PostgreSQL: connection failed: " in cli.fails("queue", "ls")
    assert 'at "127.0.0.1", port 1 failed: Connection refused (check --dsn' in cli.fails("queue", "ls")
    cli.dsn = "host=/nonexistent dbname=none"  # where libpq asks whether anybody is "accepting connections"
    assert "No such file or directory (check --dsn or PGCOMBINE_DSN)" in cli.fails("queue", "ls")
    cli.dsn = "nonsense"
    assert "the DSN can't be read" in cli.fails("queue", "ls")
    cli.dsn = empty_dsn
    for arguments in (("queue", "ls"), ("status",), ("get", "wc", "a"), ("drain", "wc"), ("worker",)):
        assert "run 'pgcombine db upgrade'" in cli.fails(*arguments)


def test_wrong_usage(cli: Cli, conn: psycopg.Connection) -> None:
    make_queue(conn, key=["a text", "b int"])
    for arguments in (
        ("nonsense",),
        ("queue", "nonsense"),
        ("queue", "create"),
        ("queue", "create", "wc", "--key", "word text"),
        ("queue", "create", "q", "--key", "a text", "--value", "n int sum", "--buckets", "many"),
        ("enqueue", "wc"),
        ("enqueue", "wc", "-", "--format", "xml"),
        ("top", "wc"),
        ("top", "wc", "--by", "m"),
        ("top", "wc", "--by", "n", "-n", 0),
        ("get", "wc"),
        ("get", "wc", "a"),
        ("get", "wc", "{}"),
        ("worker", "--concurrency", 0),
        ("worker", "--lock-timeout", "inf"),
        ("drain", "wc", "--timeout", "nan"),
        ("wait", "wc", "--timeout", -1),
        ("export", "run", "x", "--delivery-timeout", "inf"),
        ("handoff", "run", "--once", "--timeout", "nan"),
        ("handoff", "rebuild", "c", "--timeout", "1e300"),
        ("queue", "create", "q", "--key", "a text", "--value", "n int sum", "--buckets", 10**20),
        ("queue", "rebucket", "wc", 2**31),
        ("export", "create", "x", "--queue", "wc", "--batch", 2**31),
        ("export", "retry", "x", 2**63),
        ("replicas", "add", "c", "host=x", "--max-rows", 2**63),
        ("status", "--nonsense"),
    ):
        done = cli(*arguments)
        assert (done.status, done.out) == (2, ""), (arguments, done)
        assert "Usage:" in done.err


def test_keys_of_several_columns(cli: Cli, conn: psycopg.Connection) -> None:
    make_queue(conn, key=["a text", "b int"])
    conn.execute("insert into pgcombine.wc_updates values ('x', 1, 5), ('x', 2, 6)")
    assert cli.json("get", "wc", '["x", 2]', '["y", 2]') == [{"a": "x", "b": 2, "n": 6}]


def test_values_are_shown_as_postgresql_reads_them(cli: Cli, conn: psycopg.Connection) -> None:
    value = ["at timestamptz max", "d date max", "i interval sum", "b bytea max", "r float8[] array_union"]
    make_queue(conn, key=["k int[]"], value=value, delete_when=None)
    conn.execute(
        r"insert into pgcombine.wc_updates values ('{1,2}', 'infinity', '-infinity', '1 day 2:03', '\xff', '{inf}')"
    )
    (seen,) = cli.json("get", "wc", "{1,2}")
    assert seen == {
        "k": [1, 2],
        "at": "infinity",
        "d": "-infinity",
        "i": "1 day 02:03:00",
        "b": r"\xff",
        "r": ["inf"],
    }
    combine_all(conn)
    assert cli.json("top", "wc", "--by", "at") == [seen]
    assert r"\xff" in cli("get", "wc", "{1,2}").out


def test_help_tells_defaults(cli: Cli, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    for command, default in ((("worker",), "for ever. Default: 10."), (("export", "create"), "Default: NAME.")):
        with pytest.raises(SystemExit):
            app([*command, "--help"])
        assert default in capsys.readouterr().out


FILES = {
    "updates.jsonl": '{"word": "fluo", "n": 2}\n\n{"n": 3, "word": "fluo"}\n{"word": "größe, \\"quoted\\""}\n',
    "updates.csv": 'n,word\r\n2,fluo\r\n3,fluo\r\n,"größe, ""quoted"""\r\n',
}


@pytest.mark.parametrize("name", FILES)
def test_files_are_enqueued(cli: Cli, conn: psycopg.Connection, tmp_path: Path, name: str) -> None:
    make_queue(conn, delete_when=None)
    (tmp_path / name).write_text(FILES[name], encoding="utf-8", newline="")
    assert cli.json("enqueue", "wc", tmp_path / name) == {"queue": "wc", "updates": 3}
    assert current(conn) == {"fluo": 5, 'größe, "quoted"': None if name.endswith("csv") else 0}
    combine_all(conn)
    assert len(rows(conn, "wc_values")) == 2


def test_files_of_spreadsheets_begin_with_a_mark(cli: Cli, conn: psycopg.Connection, tmp_path: Path) -> None:
    make_queue(conn)
    for name, content in FILES.items():
        (tmp_path / name).write_text(content, encoding="utf-8-sig", newline="")
        assert cli.json("enqueue", "wc", tmp_path / name) == {"queue": "wc", "updates": 3}


def test_json_in_jsonl(cli: Cli, conn: psycopg.Connection, tmp_path: Path) -> None:
    make_queue(conn, key=["k jsonb"], value=["doc jsonb jsonb_merge", "tags text[] array_union"], delete_when=None)
    file = tmp_path / "updates.jsonl"
    file.write_text('{"k": [1], "doc": {"a": 1}, "tags": ["x"]}\n{"k": "s", "doc": [2]}\n{"k": 3, "doc": null}\n')
    assert cli.json("enqueue", "wc", file)["updates"] == 3
    found = conn.execute("select k, doc, tags from pgcombine.wc_current order by k").fetchall()
    assert sorted(found, key=str) == [("s", [2], None), (3, None, None), ([1], {"a": 1}, ["x"])]


def test_what_json_has_no_form_for(cli: Cli, conn: psycopg.Connection) -> None:
    make_queue(conn, key=["k bytea"], value=["x float8 max"], delete_when=None)
    conn.execute(r"insert into pgcombine.wc_updates values ('\x00ff', 'Infinity')")
    assert cli.json("get", "wc", r"\x00ff") == [{"k": r"\x00ff", "x": "inf"}]
    assert r"\x00ff" in cli("get", "wc", r"\x00ff").out


def test_what_the_server_warns_of_is_told(cli: Cli) -> None:
    made = cli("queue", "create", "x", "--key", "k int", "--value", "x float8 sum", "--json")
    assert (made.status, json.loads(made.out)) == (0, {"queue": "x", "state": "created"})
    assert made.err.startswith("pgcombine: warning: sums of float8 in column")
    assert len(made.err.splitlines()) == 1


BAD = {
    "json.jsonl": ('{"word": "a"}\n{"word": "b"}\n{"word": "c"\n', "line 3 can't be read"),
    "columns.jsonl": ('{"word": "a"}\n{"word": "b", "n": 1}\n[]\n', "line 3 is no JSON object: []"),
    "array.jsonl": ('{"word": "a"}\n["b", 1]\n', 'line 2 is no JSON object: ["b", 1]'),
    "column.jsonl": ('{"word": "a"}\n{"word": "b", "m": 1}\n', 'queue "wc" has no column "m"'),
    "null.jsonl": ('{"word": "a"}\n{"n": 1}\n', 'null value in column "word"'),
    "type.jsonl": ('{"word": "a"}\n{"word": "b", "n": "x"}\n', 'invalid input syntax for type bigint: "x"'),
    "range.jsonl": ('{"word": "a"}\n{"word": "b", "n": 9223372036854775808}\n', "out of range"),
    "nul.jsonl": ('{"word": "a"}\n{"word": "b\\u0000"}\n', "NUL"),
    "long.jsonl": ('{"word": "a"}\n{"word": "' + "x" * 2601 + '"}\n', "key_has_at_most_2600_bytes"),
    "utf8.jsonl": (b'{"word": "a"}\n{"word": "\xff"}\n', "can't be read: 'utf-8' codec can't decode byte 0xff"),
    "short.csv": ("word,n\na,1\nb\n", "line 3 doesn't have the 2 fields of the header"),
    "wide.csv": ("word,n\na,1\nb,1,2\n", "line 3 doesn't have the 2 fields of the header"),
    "quote.csv": ('word,n\na,1\n"b"x,1\n', "line 3 can't be read"),
    "twice.csv": ("word,n,word\na,1,b\n", 'the header has the column "word" twice'),
    "column.csv": ("word,m\na,1\n", 'queue "wc" has no column "m"'),
    "type.csv": ("word,n\na,1\nb,x\n", 'invalid input syntax for type bigint: "x"'),
    "utf8.csv": (b"word,n\na,1\n\xff,1\n", "can't be read: 'utf-8' codec can't decode byte 0xff"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_line_enqueues_nothing(cli: Cli, conn: psycopg.Connection, tmp_path: Path, name: str) -> None:
    make_queue(conn)
    content, message = BAD[name]
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    assert message in cli.fails("enqueue", "wc", tmp_path / name)
    assert one(conn, "select pgcombine.backlog('wc')") == 0


def test_as_a_process(conn: psycopg.Connection, dsn: str) -> None:
    """Through the console script: standard input, exit status, and a reader that has enough."""
    make_queue(conn)
    env = {"PGCOMBINE_DSN": dsn}
    done = run_cli("enqueue", "wc", "-", "--json", env=env, input='{"word": "a", "n": 1}\n{"word": "b", "n": 2}\n')
    assert (done.returncode, json.loads(done.stdout), done.stderr) == (0, {"queue": "wc", "updates": 2}, "")
    done = run_cli("enqueue", "wc", "-", "--format", "csv", env=env, input="word,n\na,x\n")
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (1, "", 1)
    assert run_cli("nonsense").returncode == 2
    assert current(conn) == {"a": 1, "b": 2}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_who_is_killed_leaves_nothing_running(conn: psycopg.Connection, dsn: str, number: signal.Signals) -> None:
    make_queue(conn)
    add(conn, {"a": 1})
    conn.execute("select pgcombine.pause('wc')")
    waiting = "select count(*) from pg_stat_activity where query like 'call pgcombine.wait%%' and datname = %s"
    with start_cli("wait", "wc", "--dsn", dsn) as process:
        eventually(lambda: one(conn, waiting, conn.info.dbname) == 1, what="it waits")
        process.send_signal(number)
        assert process.wait(timeout=60) == -number
        eventually(lambda: one(conn, waiting, conn.info.dbname) == 0, what="the server waits no longer")


def test_the_database_of_the_environment(
    conn: psycopg.Connection,
    dsn: str,
    empty_dsn: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    make_queue(conn)
    monkeypatch.setenv("PGDATABASE", "nonsense")
    monkeypatch.setenv("PGCOMBINE_DSN", dsn)
    with pytest.raises(SystemExit) as ended:
        app(["dsn"])
    assert (ended.value.code, capsys.readouterr().out) == (0, f"{dsn}\n")
    with pytest.raises(SystemExit) as ended:
        app(["queue", "ls", "--json"])
    assert json.loads(capsys.readouterr().out)[0]["queue"] == "wc"
    with pytest.raises(SystemExit) as ended:
        app(["queue", "ls", "--dsn", empty_dsn])
    assert ended.value.code == 1


def test_an_error_of_the_servers_comes_with_its_hint(cli: Cli, conn: psycopg.Connection, tmp_path: Path) -> None:
    make_queue(conn)
    conn.execute(
        "create function refuse() returns trigger language plpgsql as"
        " $$begin raise exception 'not today' using hint = 'come back tomorrow'; end$$;"
        "create trigger refuse before insert on pgcombine.wc_updates for each statement execute function refuse()"
    )
    (tmp_path / "one.jsonl").write_text('{"word": "a"}\n')
    assert cli.fails("enqueue", "wc", tmp_path / "one.jsonl") == "pgcombine: not today (come back tomorrow)\n"
