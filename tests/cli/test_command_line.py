"""The commands: exit status, errors in one line on stderr, JSON with ``--json``, and the files they load and save."""

from __future__ import annotations

import io
import json
import shlex
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pytest
import typer
from support import eventually, run_cli, start_cli
from support.queues import add, combine_all, current, hold, make_queue, one, rows, word_in
from support.servers import Server, embedded_only
from support.tiers import each_nth

from pgcombine.cli.app import app
from pgcombine.queue.combine_queue import CombineQueue

pytestmark = embedded_only


class Done(NamedTuple):
    status: int
    out: str
    err: str


class Cli:
    """Runs commands in this process, which is faster than starting another one."""

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

    def fails(self, *args: object, status: int = 1) -> str:
        """Run a command that must fail, with and without --json. Return its one line on stderr."""
        lines = set()
        for done in (self(*args), self(*args, "--json")):
            assert (done.status, done.out) == (status, ""), done
            assert len(done.err.splitlines()) == 1, done.err
            assert done.err.startswith("pgcombine: ")
            lines.add(done.err)
        (line,) = lines
        return line


@pytest.fixture
def cli(dsn: str, capsys: pytest.CaptureFixture[str]) -> Cli:
    return Cli(dsn, capsys)


@contextmanager
def as_role(conn: psycopg.Connection, role: str) -> Iterator[None]:
    """Make a role that owns nothing. The end of the block drops the role."""
    conn.execute(f"drop role if exists {role}; create role {role}")
    try:
        yield
    finally:
        conn.execute(f"drop owned by {role}; drop role {role}")


def test_every_verb_has_json_and_a_database(server: Server) -> None:
    def leaves(command: Any, path: str = "") -> Iterator[tuple[str, set[str]]]:
        for name, below in getattr(command, "commands", {}).items():
            yield from leaves(below, f"{path} {name}")
        if not hasattr(command, "commands"):
            yield path.strip(), {option for parameter in command.params for option in parameter.opts}

    options = dict(leaves(typer.main.get_command(app)))
    assert len(options) > 20
    # web and quickstart serve pages; docs prints Markdown
    assert [verb for verb, there in options.items() if "--json" not in there] == ["web", "docs", "quickstart"]
    without = [verb for verb, there in options.items() if "--dsn" not in there]
    assert [verb for verb in without if not verb.startswith("server ")] == ["docs"]


def test_commands_print_json_from_create_to_drop(cli: Cli, conn: psycopg.Connection) -> None:
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
    assert "wc_values_b0000" in shown["combine_sql"]
    add(conn, {"a": 3, "b": 5, "c": 4})
    (status,) = cli.json("status")["queues"]
    assert (status["queue"], status["backlog"], len(status["buckets"])) == ("wc", 3, 2)
    assert sum(bucket["backlog"] for bucket in status["buckets"]) == 3
    found = cli.json("get", "wc", "a", "absent", "b")
    assert sorted(found, key=lambda row: str(row["word"])) == [{"word": "a", "n": 3}, {"word": "b", "n": 5}]
    tier = ("queue", "create-tier", "first", "--source", "wc", "--key", "left(word, 1) as first", "--no-existing")
    for _ in range(2):
        assert cli.json(*tier, "--if-not-exists") == {"queue": "first", "state": "created"}
    assert cli.json("drain", "wc")["updates"] == 3
    assert cli.json("drain", "first")["updates"] == 3
    assert cli.json("queue", "drop", "first", "--yes")["state"] == "dropped"
    assert cli.json("top", "wc", "--by", "n", "-n", 2) == [{"word": "b", "n": 5}, {"word": "c", "n": 4}]
    assert cli.json("top", "wc", "--limit", 1) == [{"word": "b", "n": 5}]
    assert sorted(row["n"] for row in cli.json("values", "wc")) == [3, 4, 5]
    assert cli.json("queue", "pause", "wc")["state"] == "paused"
    assert cli.json("queue", "resume", "wc")["state"] == "resumed"
    assert cli.json("queue", "drop", "wc", "--yes")["state"] == "dropped"
    assert cli.json("queue", "ls") == []


@pytest.mark.wc
def test_failures_are_one_line(cli: Cli, conn: psycopg.Connection, tmp_path: Path) -> None:
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
        ("enqueue", "wc", tmp_path, "--format", "csv"): "Is a directory",
    }
    for arguments, message in cases.items():
        assert message in cli.fails(*arguments), arguments


def test_unreachable_database_fails_in_one_line(cli: Cli, empty_dsn: str) -> None:
    cli.dsn = "postgresql://nobody@127.0.0.1:1/none"
    assert "can't connect to PostgreSQL: connection failed: " in cli.fails("queue", "ls")
    assert 'at "127.0.0.1", port 1 failed: Connection refused (check --dsn' in cli.fails("queue", "ls")
    # libpq's message for a socket ends with a question about "accepting connections", which the error leaves out
    cli.dsn = "host=/nonexistent dbname=none"
    assert "No such file or directory (check --dsn or PGCOMBINE_DSN)" in cli.fails("queue", "ls")
    cli.dsn = "nonsense"
    assert "the DSN can't be read" in cli.fails("queue", "ls")
    cli.dsn = empty_dsn
    for arguments in (("queue", "ls"), ("status",), ("get", "wc", "a"), ("drain", "wc")):
        assert "run 'pgcombine db upgrade'" in cli.fails(*arguments)
    assert "run 'pgcombine db upgrade'" in cli.fails("worker", status=3)


def test_wrong_usage_ends_with_status_2(cli: Cli, conn: psycopg.Connection) -> None:
    make_queue(conn, key=["a text", "b int"])
    make_queue(conn, "two", value=["n bigint sum", "m bigint sum"], delete_when=None)
    for arguments in (
        ("nonsense",),
        ("queue", "nonsense"),
        ("queue", "create"),
        ("queue", "create", "wc", "--key", "word text"),
        ("queue", "create", "q", "--key", "a text", "--value", "n int sum", "--buckets", "many"),
        ("enqueue", "wc"),
        ("enqueue", "wc", "-", "--format", "xml"),
        ("top", "wc", "--by", "m"),
        ("top", "two"),
        ("values", "wc", "--format", "xml"),
        ("values", "wc", "--output", "values.txt"),
        ("values", "wc", "--json", "--format", "csv"),
        ("enqueue", "wc", "updates.txt"),
        ("enqueue", "wc", "updates"),
        ("top", "wc", "--by", "n", "-n", 0),
        ("get", "wc"),
        ("get", "wc", "a"),
        ("get", "wc", "{}"),
        ("worker", "--concurrency", 0),
        ("worker", "--lock-timeout", "inf"),
        ("drain", "wc", "--timeout", "nan"),
        ("wait", "wc", "--timeout", -1),
        ("export", "run", "x", "--delivery-timeout", "inf"),
        ("replicas", "run", "--once", "--timeout", "nan"),
        ("replicas", "rebuild", "c", "--timeout", "1e300"),
        ("queue", "create", "q", "--key", "a text", "--value", "n int sum", "--buckets", 10**20),
        ("queue", "rebucket", "wc", 2**31),
        ("export", "create", "x", "--queue", "wc", "--batch", 2**31),
        ("export", "quarantine", "retry", "x", 2**63),
        ("replicas", "add", "c", "host=x", "--max-rows", 2**63),
        ("status", "--nonsense"),
    ):
        done = cli(*arguments)
        assert (done.status, done.out) == (2, ""), (arguments, done)
        assert "Usage:" in done.err


def test_get_takes_keys_of_several_columns(cli: Cli, conn: psycopg.Connection) -> None:
    make_queue(conn, key=["a text", "b int"])
    conn.execute("insert into pgcombine.wc_updates values ('x', 1, 5), ('x', 2, 6)")
    assert cli.json("get", "wc", '["x", 2]', '["y", 2]') == [{"a": "x", "b": 2, "n": 6}]


def test_printed_values_are_valid_input_for_postgresql(cli: Cli, conn: psycopg.Connection) -> None:
    value = ["at timestamptz max", "d date max", "i interval sum", "b bytea max", "r float8[] array_union"]
    make_queue(conn, key=["k int[]"], value=value, delete_when=None)
    conn.execute(
        r"insert into pgcombine.wc_updates values ('{1,2}', 'infinity', '-infinity', '1 day 2:03', '\xff', '{inf}')"
    )
    (seen,) = cli.json("get", "wc", "{1,2}")
    assert seen == {"k": [1, 2], "at": "infinity", "d": "-infinity", "i": "1 day 02:03:00", "b": r"\xff", "r": ["inf"]}
    combine_all(conn)
    assert cli.json("top", "wc", "--by", "at") == [seen]
    assert r"\xff" in cli("get", "wc", "{1,2}").out


FILES = {
    "updates.jsonl": '{"word": "fluo", "n": 2}\n\n{"n": 3, "word": "fluo"}\n{"word": "größe, \\"quoted\\""}\n',
    "updates.csv": 'n,word\r\n2,fluo\r\n3,fluo\r\n,"größe, ""quoted"""\r\n',
}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize("name", FILES)
def test_files_are_enqueued(cli: Cli, conn: psycopg.Connection, tmp_path: Path, name: str, encoding: str) -> None:
    make_queue(conn, delete_when=None)
    (tmp_path / name).write_text(FILES[name], encoding=encoding, newline="")
    assert cli.json("enqueue", "wc", tmp_path / name) == {"queue": "wc", "updates": 3}
    assert current(conn) == {"fluo": 5, 'größe, "quoted"': None if name.endswith("csv") else 0}
    combine_all(conn)
    assert len(rows(conn, "wc_values")) == 2


def test_file_with_a_token_counts_once(cli: Cli, conn: psycopg.Connection, tmp_path: Path) -> None:
    make_queue(conn, delete_when=None)
    file = tmp_path / "updates.jsonl"
    bad = tmp_path / "bad.jsonl"
    file.write_text(FILES["updates.jsonl"], encoding="utf-8")
    bad.write_text('{"word": "a"}\n{"word": "b", "m": 1}\n')
    assert cli("enqueue", "wc", bad, "--token", "day 1").status == 1
    assert cli("enqueue", "wc", file, "--token", "day 1").out == "enqueued: 3 updates\n"
    assert cli.json("enqueue", "wc", file, "--token", "day 1") == {"queue": "wc", "updates": 0}
    assert 'queue "wc" has the token "day 1"' in cli("enqueue", "wc", file, "--token", "day 1").out
    assert cli.json("enqueue", "wc", file, "--token", "day 2") == {"queue": "wc", "updates": 3}
    assert current(conn)["fluo"] == 10


def test_jsonl_holds_json_and_arrays(cli: Cli, conn: psycopg.Connection, tmp_path: Path) -> None:
    make_queue(conn, key=["k jsonb"], value=["doc jsonb jsonb_merge", "tags text[] array_union"], delete_when=None)
    file = tmp_path / "updates.jsonl"
    file.write_text('{"k": [1], "doc": {"a": 1}, "tags": ["x"]}\n{"k": "s", "doc": [2]}\n{"k": 3, "doc": null}\n')
    assert cli.json("enqueue", "wc", file)["updates"] == 3
    found = conn.execute("select k, doc, tags from pgcombine.wc_current order by k").fetchall()
    assert sorted(found, key=str) == [("s", [2], None), (3, None, None), ([1], {"a": 1}, ["x"])]


def test_server_warnings_go_to_stderr(cli: Cli) -> None:
    made = cli("queue", "create", "x", "--key", "k int", "--value", "x float8 sum", "--json")
    assert (made.status, json.loads(made.out)) == (0, {"queue": "x", "state": "created"})
    assert made.err.startswith("pgcombine: warning: sums of float8 in column")
    assert len(made.err.splitlines()) == 1


BAD = {
    "json.jsonl": ('{"word": "a"}\n{"word": "b"}\n{"word": "c"\n', "line 3 can't be read"),
    "columns.jsonl": ('{"word": "a"}\n{"word": "b", "n": 1}\n[]\n', "line 3 is no JSON object: []"),
    "array.jsonl": ('{"word": "a"}\n\n["b", 1]\n', 'line 3 is no JSON object: ["b", 1]'),
    "column.jsonl": ('{"word": "a"}\n\n{"word": "b", "m": 1}\n', 'line 3: queue "wc" has no column "m"'),
    "null.jsonl": ('\n\n{"word": "a"}\n\n{"n": 1}\n', "line 5: update 2 doesn't fit"),
    "null2.jsonl": ('{"word": "a"}\n{"n": 1}\n', 'null value in column "word"'),
    "type.jsonl": (
        '\n{"word": "a"}\n{"word": "b", "n": 1}\n\n\n{"word": "c", "n": 2}\n{"word": "d", "n": "x"}\n',
        'line 7: update 4 doesn\'t fit queue "wc": invalid input syntax for type bigint: "x" (column n: "x")',
    ),
    "range.jsonl": ('{"word": "a"}\n{"word": "b", "n": 9223372036854775808}\n', "out of range"),
    "nul.jsonl": ('{"word": "a"}\n\n{"word": "b\\u0000"}\n{"word": "c"}\n', "line 3: update 2 doesn't fit"),
    "surrogate.jsonl": ('\n{"word": "a"}\n{"word": "b\\ud800"}\n{"word": "c"}\n', "line 3: update 2 doesn't fit"),
    "long.jsonl": ('{"word": "a"}\n{"word": "' + "x" * 2601 + '"}\n', "at most 2600 bytes"),
    "utf8.jsonl": (
        b'{"word": "a"}\n' * 5 + b'{"word": "\xff"}\n' + b'{"word": "b"}\n' * 5,
        "line 6 can't be read: 'utf-8' codec can't decode byte 0xff",
    ),
    "short.csv": ("word,n\na,1\nb\n", "line 3 has 1 field, but the header has 2"),
    "wide.csv": ("word,n\na,1\n\n\nb,1,2\n", "line 5 has 3 fields, but the header has 2"),
    "long.csv": ('word,n\n"a\n\nb",1\n"c\nd",1,2\n', "line 5 has 3 fields, but the header has 2"),
    "quote.csv": ('word,n\na,1\n"b"x,1\n', "line 3 can't be read"),
    "open.csv": ('word,n\n"a\nb",1\n"c,1\nd,1\n', "line 4 can't be read: unexpected end of data"),
    "twice.csv": ("word,n,word\na,1,b\n", 'line 1: the header has the column "word" twice'),
    "column.csv": ("\nword,m\na,1\n", 'line 2: queue "wc" has no column "m"'),
    "type.csv": ('\nn,word\n1,"a\nb"\n\n1,c\nx,"d\ne"\n1,f', "line 7: update 3 doesn't fit"),
    "type2.csv": ("word,n\na,1\nb,x\n", 'invalid input syntax for type bigint: "x"'),
    "utf8.csv": (b"word,n\na,1\n\xff,1\nb,1\n", "line 3 can't be read: 'utf-8' codec can't decode byte 0xff"),
}


@pytest.mark.wc
@pytest.mark.parametrize("name", each_nth(3, BAD))
def test_a_bad_line_enqueues_nothing(cli: Cli, conn: psycopg.Connection, tmp_path: Path, name: str) -> None:
    content, message = BAD[name]
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    assert message in cli.fails("enqueue", "wc", tmp_path / name)
    assert one(conn, "select pgcombine.backlog('wc')") == 0


@pytest.mark.wc
def test_console_script_reads_stdin(conn: psycopg.Connection, dsn: str) -> None:
    """The command, in a process of its own, reads updates from standard input."""
    env = {"PGCOMBINE_DSN": dsn}
    done = run_cli("enqueue", "wc", "-", "--json", env=env, input='{"word": "a", "n": 1}\n{"word": "b", "n": 2}\n')
    assert (done.returncode, json.loads(done.stdout), done.stderr) == (0, {"queue": "wc", "updates": 2}, "")
    done = run_cli("enqueue", "wc", "-", "--format", "csv", env=env, input="word,n\na,x\n")
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (1, "", 1)
    assert run_cli("nonsense").returncode == 2
    assert current(conn) == {"a": 1, "b": 2}


@pytest.mark.wc
@pytest.mark.parametrize(
    ("number", "status"),
    [(signal.SIGINT, 130), pytest.param(signal.SIGTERM, -15, marks=pytest.mark.slow), (signal.SIGKILL, -9)],
)
def test_ended_command_leaves_nothing_running_on_the_server(
    conn: psycopg.Connection, dsn: str, number: signal.Signals, status: int
) -> None:
    add(conn, {"a": 1})
    conn.execute("select pgcombine.pause('wc')")
    waiting = "select count(*) from pg_stat_activity where query like 'call pgcombine.wait%%' and datname = %s"
    with start_cli("wait", "wc", "--dsn", dsn) as process:
        eventually(lambda: one(conn, waiting, conn.info.dbname) == 1, what="the command waits")
        process.send_signal(number)
        assert process.wait(timeout=60) == status
        eventually(lambda: one(conn, waiting, conn.info.dbname) == 0, what="the server waits no longer")


@pytest.mark.wc
def test_commands_use_the_database_of_the_environment(
    conn: psycopg.Connection,
    dsn: str,
    empty_dsn: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
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


@pytest.mark.wc
def test_server_error_keeps_its_hint(cli: Cli, conn: psycopg.Connection, tmp_path: Path) -> None:
    conn.execute(
        "create function refuse() returns trigger language plpgsql as"
        " $$begin raise exception 'not today' using hint = 'come back tomorrow'; end$$;"
        "create trigger refuse before insert on pgcombine.wc_updates for each statement execute function refuse()"
    )
    (tmp_path / "one.jsonl").write_text('{"word": "a"}\n')
    assert cli.fails("enqueue", "wc", tmp_path / "one.jsonl") == "pgcombine: not today (come back tomorrow)\n"


@pytest.mark.wc
def test_initialize_names_the_line_of_a_bad_value(cli: Cli, conn: psycopg.Connection, tmp_path: Path) -> None:
    for content, message in {
        'word,n\n\n"a\nb",1\nc,x\n': 'line 5: queue "wc" can\'t be initialized: row 2: invalid input syntax',
        "word,n\na,1\nb,1\n\na,2\n": 'line 5: queue "wc" can\'t be initialized: row 3: a key is given twice',
    }.items():
        (tmp_path / "values.csv").write_text(content)
        assert message in cli.fails("initialize", "wc", tmp_path / "values.csv")


@pytest.mark.wc
def test_empty_file_is_reported(cli: Cli, conn: psycopg.Connection, tmp_path: Path) -> None:
    for name, content in {"empty.csv": "", "header.csv": "word,n\n", "empty.jsonl": "", "blank.jsonl": "\n\n"}.items():
        (tmp_path / name).write_text(content)
        assert cli("enqueue", "wc", tmp_path / name) == (0, f"no updates in {tmp_path / name}\n", "")
        assert cli.json("enqueue", "wc", tmp_path / name) == {"queue": "wc", "updates": 0}
        assert cli("initialize", "wc", tmp_path / name) == (0, f"no values in {tmp_path / name}\n", "")


@pytest.mark.wc
def test_ctrl_c_cancels_the_commit(conn: psycopg.Connection, dsn: str, tmp_path: Path) -> None:
    """A deferred trigger waits for a lock during the commit. Ctrl-C cancels the commit, and nothing is enqueued."""
    conn.execute(
        "create table gate (); create function wait_at_gate() returns trigger language plpgsql as"
        " $$begin lock table gate; return null; end$$;"
        "create constraint trigger gate after insert on pgcombine.wc_updates deferrable initially deferred"
        " for each row execute function wait_at_gate()"
    )
    (tmp_path / "one.csv").write_text(f"word,n\n{word_in(conn, 0)},1\n")
    waits = "select count(*) from pg_locks where relation = 'gate'::regclass and not granted"
    with psycopg.connect(dsn) as blocker:
        blocker.execute("lock table gate")
        with start_cli("enqueue", "wc", tmp_path / "one.csv", "--dsn", dsn, stderr=subprocess.PIPE) as process:
            eventually(lambda: one(conn, waits) == 1, what="the commit waits")
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert "nothing was loaded" in err
    assert "Traceback" not in err
    assert one(conn, "select pgcombine.backlog('wc')") == 0


@pytest.mark.wc
def test_top_notes_pending_updates(cli: Cli, conn: psycopg.Connection) -> None:
    add(conn, {"a": 1})
    combine_all(conn)
    assert cli("top", "wc").err == ""
    add(conn, {"a": 1, "b": 2})
    for shown in (cli("top", "wc"), cli("top", "wc", "--json"), cli("values", "wc")):
        assert shown.status == 0
        assert shown.err.startswith("pgcombine: note: 2 updates of wc are pending and not in these values")


@pytest.mark.wc
def test_reader_without_other_rights_gets_values(cli: Cli, conn: psycopg.Connection, dsn: str) -> None:
    """A role that may only read ``wc_values`` and ``wc_current`` gets the values, without an error."""
    add(conn, {"a": 1})
    combine_all(conn)
    with as_role(conn, "pgcombine_reader"):
        conn.execute("grant select on pgcombine.wc_values, pgcombine.wc_current to pgcombine_reader")
        cli.dsn = psycopg.conninfo.make_conninfo(dsn, options="-c role=pgcombine_reader")
        for shown in (("top", "wc"), ("values", "wc"), ("get", "wc", "a")):
            assert cli.json(*shown) == [{"word": "a", "n": 1}]


@pytest.mark.parametrize("form", ["csv", pytest.param("jsonl", marks=pytest.mark.slow)])
def test_saved_values_can_be_loaded(cli: Cli, conn: psycopg.Connection, tmp_path: Path, form: str) -> None:
    value = ["n numeric sum", "doc jsonb max", "tags text[] array_union", "at timestamptz max", "b bytea max"]
    for queue in ("wc", "copy"):
        make_queue(conn, queue, key=["k jsonb", "w text"], value=value, delete_when=None)
    insert = "insert into pgcombine.wc_updates values (%s, %s, %s, %s, %s, %s, %s)"
    conn.execute(insert, ("[1]", 'a,"b"', "1.50", '{"x": [null]}', ["x", "y z"], "infinity", b"\x00\xff"))
    conn.execute(insert, ('"s"', "new\nline; \\ größe", None, None, None, None, None))
    conn.execute(insert, ("3", "x", "NaN", '"t"', [], "2024-02-29", b"x"))
    combine_all(conn)
    file = tmp_path / f"values.{form}"
    saved = cli.json("values", "wc", "--output", file)
    assert saved == {"queue": "wc", "values": 3, "file": str(file)}
    assert cli("values", "wc", "-o", file).out == f"saved: 3 values in {file}\n"
    assert [path.name for path in tmp_path.iterdir()] == [file.name]
    printed = cli("values", "wc", "--format", form)
    assert printed.out == file.read_text(encoding="utf-8")
    assert cli.json("initialize", "copy", file)["keys"] == 3
    same = "select count(*) from (select * from pgcombine.wc_values intersect select * from pgcombine.copy_values) same"
    assert one(conn, same) == 3


@pytest.mark.wc
@pytest.mark.slow
def test_values_prints_more_than_a_portion(cli: Cli, conn: psycopg.Connection, tmp_path: Path) -> None:
    CombineQueue("wc").initialize(conn, [(f"w{i}", i + 1) for i in range(2500)])
    assert len(cli.json("values", "wc")) == 2500
    table = cli("values", "wc").out.splitlines()
    assert (len(table), table[0].split()) == (2501, ["word", "n"])
    assert len(cli("values", "wc", "--format", "jsonl").out.splitlines()) == 2500
    make_queue(conn, "empty")
    assert cli.json("values", "empty") == []
    assert cli("values", "empty").out.split() == ["word", "n"]
    assert cli("values", "empty", "--format", "jsonl").out == ""
    assert cli("values", "empty", "--format", "csv").out == "word,n\n"


@pytest.mark.wc
def test_failed_save_leaves_the_file_unchanged(cli: Cli, conn: psycopg.Connection, tmp_path: Path) -> None:
    (tmp_path / "values.csv").write_text("mine")
    conn.execute("alter table pgcombine.wc_values rename to wc_other")
    cli.fails("values", "wc", "--output", tmp_path / "values.csv")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["mine"]
    assert "No such file" in cli.fails("values", "wc", "--output", tmp_path / "none" / "values.csv")


@pytest.mark.wc
def test_drop_asks_for_confirmation(cli: Cli, conn: psycopg.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    add(conn, {"a": 1, "b": 1})
    combine_all(conn)
    add(conn, {"a": 1})
    refused = cli("queue", "drop", "wc", "--force", "--json")
    lost = 'queue "wc" will be lost with 2 values and 1 pending update'
    assert refused == (2, "", f"pgcombine: {lost}; there is no terminal to ask on: pass --yes to do it\n")
    assert "there is no queue" in cli.fails("queue", "drop", "cw")

    answers = io.StringIO()
    monkeypatch.setattr(answers, "isatty", lambda: True)
    monkeypatch.setattr("sys.stdin", answers)
    for answer, status in (("\n", 1), ("n\n", 1), ("", 1), ("y\n", 0)):
        answers.seek(0)
        answers.truncate()
        answers.write(answer)
        answers.seek(0)
        assert one(conn, "select count(*) from pgcombine.queue") == 1
        done = cli("queue", "drop", "wc", "--force", "--json")
        assert (done.status, done.out) == (status, "" if status else '{"queue": "wc", "state": "dropped"}\n'), done
        assert f"{lost}. Go on? [y/N]" in done.err
    assert one(conn, "select count(*) from pgcombine.queue") == 0


@pytest.mark.wc
def test_drop_names_everything_that_is_lost(cli: Cli, conn: psycopg.Connection) -> None:
    conn.execute("select pgcombine.create_export('out', 'wc', exporter => 'python')")
    add(conn, {"a": 1})
    combine_all(conn)
    quarantined(conn, {"bad": 1})
    assert cli("queue", "drop", "wc").err == (
        'pgcombine: queue "wc" will be lost with 1 value, 0 pending updates, 1 quarantined key with 1 update and '
        "1 change in exports and feeds; there is no terminal to ask on: pass --yes to do it\n"
    )


@pytest.mark.wc
def test_verbs_that_delete_refuse_without_a_terminal(cli: Cli, conn: psycopg.Connection) -> None:
    conn.execute("select pgcombine.create_export('out', 'wc', exporter => 'python')")
    conn.execute("select pgcombine_internal.handoff_register('b', 'host=127.0.0.1 port=1')")
    add(conn, {"a": 1})
    combine_all(conn)
    quarantined(conn, {"bad": 1})
    for lost, arguments in (
        ("1 update of 1 quarantined key of wc will be lost", ("quarantine", "drop", "wc", "--all")),
        ("the updates of 1 quarantined key of wc will be lost", ("quarantine", "drop", "wc", "bad")),
        ('export "out" will be dropped, with 1 pending and 0 quarantined entries', ("export", "drop", "out")),
        ('0 entries of export "out" will be lost', ("export", "quarantine", "drop", "out", "--all")),
        ('server "b" will be forgotten', ("replicas", "rm", "b")),
        ('0 hints and 0 quarantined updates for server "b"', ("replicas", "truncate", "b", "--reason", "it is gone")),
        ('0 updates that server "b" refused', ("replicas", "quarantine", "drop", "b", "--all", "--reason", "gone")),
        ('the contents of all queues on server "b" will be replaced', ("replicas", "rebuild", "b")),
        ("all that pgcombine keeps in this database will be lost", ("db", "remove")),
    ):
        refused = cli(*arguments)
        assert (refused.status, refused.out) == (2, ""), arguments
        assert refused.err.startswith(f"pgcombine: {lost}"), arguments
        assert refused.err.endswith("; there is no terminal to ask on: pass --yes to do it\n"), arguments
    assert cli.json("quarantine", "ls")[0]["updates"] == 1
    assert cli.json("export", "ls")[0]["pending"] == 1
    assert [row["name"] for row in cli.json("replicas", "ls")] == ["b"]
    assert cli.json("quarantine", "drop", "wc", "bad", "--yes")["updates"] == 1


def test_status_of_an_empty_database_names_the_next_step(cli: Cli) -> None:
    shown = cli("status")
    command = "pgcombine queue create wc --key 'word text' --value 'n bigint sum'"
    assert (shown.status, shown.out) == (0, f"no queues yet: {command} makes one\n")
    assert cli(*shlex.split(command)[1:]).status == 0
    assert cli("status").out.splitlines()[1].split()[0] == "wc"


def quarantined(conn: psycopg.Connection, updates: dict[str, int]) -> None:
    """Enqueue updates, and quarantine each key with its update."""
    for word, n in updates.items():
        add(conn, {word: n})
        hold(conn, word=word)


@pytest.mark.wc
def test_commands_note_quarantined_updates(cli: Cli, conn: psycopg.Connection) -> None:
    add(conn, {"a": 1})
    combine_all(conn)
    assert cli.json("verify", "wc") == {"queue": "wc", "problems": []}
    quarantined(conn, {"bad": 1, "worse": 1})
    note = "pgcombine: note: 2 quarantined keys of wc with 2 updates, which no value contains (pgcombine quar"
    for verb in ("wait", "verify", "drain", "top", "values"):
        told = cli(verb, "wc")
        assert (told.status, told.err.startswith(note)) == (0, True), (verb, told)
    for verb in ("wait", "verify"):
        fields = json.loads(cli(verb, "wc", "--json").out)
        assert (fields["quarantined_keys"], fields["quarantined_updates"]) == (2, 2)
    one_of_them = cli("get", "wc", "a", "bad")
    assert one_of_them.err.startswith("pgcombine: note: 1 quarantined key of wc with 1 update, which no value")
    assert cli.json("get", "wc", "a", "absent") == [{"word": "a", "n": 1}]


def test_commands_take_quarantined_keys_of_several_columns(cli: Cli, conn: psycopg.Connection) -> None:
    make_queue(conn, key=["key date", "updates bytea"])
    conn.execute(r"insert into pgcombine.wc_updates values ('2024-02-29', '\x00', 1)")
    hold(conn, key="2024-02-29", updates="\\x00")
    assert "1 quarantined key" in cli("get", "wc", r'["29 Feb 2024", "\\x00"]').err
    assert cli.json("get", "wc", r'["2024-02-28", "\\x00"]') == []


@pytest.mark.wc
def test_status_shows_what_fails(cli: Cli, conn: psycopg.Connection) -> None:
    make_queue(conn, "well")
    quarantined(conn, {"bad": 1})
    conn.execute("select pgcombine_internal.fail_pass('wc', 2, '22003', 'bigint out of range')")
    shown = cli("status").out.splitlines()
    assert shown[1].split() == ["wc", "0", "0", "s", "0/s", "0", "of", "4", "1", "key", "1", "bucket"]
    assert shown[2].split() == ["well", "0", "0", "s", "0/s", "0", "of", "4"]
    assert shown[3] == "wc: 1 quarantined update, in no value and in no backlog (pgcombine quarantine ls wc)"
    assert shown[4] == "wc: bucket 2 failed 1 time, last: bigint out of range"
    wc, well = cli.json("status")["queues"]
    assert (wc["quarantined_keys"], wc["quarantined_updates"]) == (1, 1)
    assert [(one["bucket"], one["attempts"], one["sqlstate"]) for one in wc["failing_buckets"]] == [(2, 1, "22003")]
    assert (well["quarantined_keys"], well["quarantined_updates"], well["failing_buckets"]) == (0, 0, [])
