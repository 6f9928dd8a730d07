"""Every value that PostgreSQL's types can hold passes each way out, also if Python has no object for the value.

``EXTREMES`` lists values by type, and a test compares its types with the catalog's. The queue ``x`` has a value column
for each type and for each array type. The key columns of the queue ``y`` have the types that can be keys.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.types.range import Range
from support import run_cli
from support.queues import hold, one
from support.receiver import receiving
from support.servers import Server, embedded_only
from support.site import served

import pgcombine
from pgcombine import CombineQueue, ExportWorker, Feed, ReplicatedQueue
from pgcombine.queue.callbacks import ChangeStream

TIMES = ["infinity", "-infinity", "4713-01-01 BC", "10000-01-01", "294276-12-31", "0001-01-01", "9999-12-31"]
RANGES = ["[infinity,)", "[-infinity,infinity]", "[4713-01-01 BC,10000-01-01)", "[9999-12-31,10000-01-01)", "empty"]
MULTI = ["{[-infinity,2020-01-01),[2021-01-01,infinity)}", "{[2020-01-01,2021-01-01)}", "{}"]
EXTREMES = {
    "date": [*TIMES, "5874897-12-31"],
    "timestamp": [*TIMES, "0001-01-01 00:00:00"],
    "timestamptz": [*TIMES, "0001-01-01 00:00:00+14", "9999-12-31 23:59:59-14"],
    "time": ["24:00", "00:00", "23:59:59.999999"],
    "timetz": ["24:00+00", "24:00-15:59:59", "12:00+15:59:59", "12:00+00:00:30"],
    "interval": ["178000000 years", "-178000000 years", "2147483647 days", "-2147483648 days", "1 mon -3 days 04:00"],
    "daterange": RANGES,
    "tsrange": RANGES,
    "tstzrange": RANGES,
    "datemultirange": MULTI,
    "tsmultirange": MULTI,
    "tstzmultirange": MULTI,
    "numeric": ["NaN", "Infinity", "-Infinity", "1e1000", "1e-1000"],
    "float8": ["NaN", "Infinity", "-Infinity", "5e-324", "-0"],
    "float4": ["NaN", "Infinity", "1e-45"],
    "numrange": ["[NaN,NaN]", "[-Infinity,Infinity]", "(,)"],
    "nummultirange": ["{[-Infinity,0),[NaN,NaN]}"],
    "jsonb": ["1" + "0" * 2000, '{"a": [1e400, null, "\\u2028"]}', "1e-400", '"infinity"'],
    "json": ["1" + "0" * 5000, '[1e400, 1E400, {"a": 1, "a": 2}]'],
    "int2": ["-32768"],
    "int4": ["-2147483648"],
    "int8": ["-9223372036854775808", "9223372036854775807"],
    "int4range": ["[-2147483648,2147483647)"],
    "int8range": ["[-9223372036854775808,9223372036854775807)", "(,)", "empty"],
    "int4multirange": ["{(,1),[5,)}"],
    "int8multirange": ["{(,1),[5,)}"],
    "money": ["-92233720368547758.08"],
    "bytea": ["\\x00ff", ""],
    "bool": ["false"],
    "text": ["", "\u2028\x01\U0001f600", "infinity", "\\N"],
    "varchar": ["{}"],
    "bpchar": ["x "],
    "char": ["", "\x7f"],
    "name": ["a"],
    "bit": ["1"],
    "varbit": ["", "101"],
    "uuid": ["00000000-0000-0000-0000-000000000000"],
    "inet": ["::/0", "::ffff:1.2.3.4/120", "10.0.0.1/8"],
    "cidr": ["::/0", "0.0.0.0/0"],
    "macaddr": ["08:00:2b:01:02:03"],
    "macaddr8": ["08:00:2b:01:02:03:04:05"],
    "oid": ["4294967295"],
    "xid8": ["18446744073709551615"],
    "pg_lsn": ["FFFFFFFF/FFFFFFFF"],
    "tid": ["(4294967295,65535)"],
    "tsvector": ["'a':1A 'b''c'"],
    "tsquery": ["'a' & !'b'"],
    "point": ["(NaN,Infinity)"],
    "line": ["{0,-1,Infinity}"],
    "lseg": ["[(-Infinity,0),(0,NaN)]"],
    "box": ["(Infinity,Infinity),(0,0)"],
    "path": ["((0,0),(1,Infinity))"],
    "polygon": ["((0,0),(1,Infinity))"],
    "circle": ["<(0,0),Infinity>"],
    "jsonpath": ['$."a"[*]'],
}
# types of object ids and of the server's own states, and xml, which not every server has
OTHERS = (
    r"^(reg|pg_(?!lsn)|int2vector|oidvector|cid$|xid$|xml$|gtsvector|refcursor|txid_snapshot|aclitem|cstring|unknown)"
)
ROWS = max(map(len, EXTREMES.values()))
NO_KEYS = {"jsonb", "json", "money"}  # the index row would be too large; not hashable; depends on lc_monetary
MULTIRANGES = {name for name in EXTREMES if name.endswith("multirange")}  # Python's class has no hash


def quoted(name: str) -> str:
    return f'"{name}"' if name == "char" else name


def array(values: Iterable[str], delimiter: str = ",") -> str:
    return f"{{{delimiter.join(json.dumps(value, ensure_ascii=False) for value in values)}{delimiter}NULL}}"


COLUMNS = [(f"v{i}", quoted(name), values) for i, (name, values) in enumerate(EXTREMES.items())]
COLUMNS += [
    (f"a{i}", f"{quoted(name)}[]", [array(values, ";" if name == "box" else ",")])
    for i, (name, values) in enumerate(EXTREMES.items())
]


def test_list_has_the_types_of_the_catalog(conn: psycopg.Connection) -> None:
    found = conn.execute(
        "select typname from pg_type where typnamespace = 'pg_catalog'::regnamespace and typtype in ('b', 'r', 'm') "
        "and typcategory <> 'A' and typname !~ %s",
        (OTHERS,),
    )
    assert {name for (name,) in found} == set(EXTREMES)


def fill(conn: psycopg.Connection, queue: str, columns: list[tuple[str, str, list[str]]], **more: str) -> None:
    """Enqueue ROWS updates with the extreme values of each column, and with ``more`` values."""
    for row in range(ROWS):
        values = [values[row % len(values)] for _, _, values in columns]
        names = ", ".join([name for name, _, _ in columns] + list(more))
        given = ", ".join([f"%s::{type_}" for _, type_, _ in columns] + [one.format(row) for one in more.values()])
        conn.execute(f"insert into pgcombine.{queue}_updates ({names}) select {given}".encode(), values)


def make(conn: psycopg.Connection) -> None:
    """Make the queues x and y with feeds and exports."""
    values = ["at bigint max", *(f"{name} {type_} last(at)" for name, type_, _ in COLUMNS)]
    conn.execute("select pgcombine.create_queue('x', array['k text'], %s, buckets => 1)", (values,))
    hashed = conn.execute(
        "select t.typname from pg_type t join pg_opclass o on o.opcintype = t.oid and o.opcdefault "
        "join pg_am m on m.oid = o.opcmethod where m.amname in ('hash', 'btree') group by 1 having count(*) = 2"
    )
    names = {name for (name,) in hashed} & EXTREMES.keys() - NO_KEYS - MULTIRANGES
    keys = [one for one in COLUMNS if one[1].strip('"') in names][:31]
    listed = [f"{name} {type_}" for name, type_, _ in keys]
    conn.execute("select pgcombine.create_queue('y', %s, array['n bigint sum'], buckets => 1)", (listed,))
    for queue in ("x", "y"):
        conn.execute("select pgcombine.create_feed(%s, %s)", (f"{queue}_feed", queue))
        for kind in ("python", "files", "webhook", "postgres"):
            target = None if kind == "python" else "set by the test"
            conn.execute(
                "select pgcombine.create_export(%s, %s, %s, target => %s)", (f"{queue}_{kind}", queue, kind, target)
            )
    fill(conn, "x", COLUMNS, k="'k{}'", at="1")
    fill(conn, "y", keys, n="1")


@embedded_only
def test_every_value_passes_each_way_out(conn: psycopg.Connection, dsn: str, server: Server, tmp_path: Path) -> None:
    make(conn)
    seen: dict[str, list[Any]] = {}
    failed: dict[str, str] = {}

    def leave(way: str, read: Callable[[], Any]) -> None:
        """Read values in one way, and record the number of rows, or the error."""
        try:
            seen[way] = list(read())
        except Exception as error:
            failed[way] = f"{type(error).__name__}: {error}"[:200]

    def printed(*arguments: object) -> list[str]:
        done = run_cli(*arguments, env={"PGCOMBINE_DSN": dsn})
        assert done.returncode == 0, done.stderr[-300:]
        return done.stdout.splitlines()

    with ExitStack() as stack:
        other = stack.enter_context(server.database())
        receiver = stack.enter_context(receiving())
        client = stack.enter_context(served(dsn))
        for name in ("x", "y"):
            queue, feed = CombineQueue(name), Feed(f"{name}_feed")
            observed: list[Any] = []

            def observe(tx: psycopg.Connection, changes: ChangeStream, observed: list[Any] = observed) -> None:
                observed.extend(changes)

            queue.on_change(observe, name=f"o_{name}")
            leave(f"{name} observer", lambda queue=queue, observed=observed: pgcombine.drain(dsn, queue) and observed)
            pgcombine.drain(dsn, queue)
            leave(f"{name} values", lambda queue=queue: queue.values(conn))
            keys = [key for key, _ in seen.get(f"{name} values", [])] if name == "y" else [f"k{i}" for i in range(ROWS)]
            leave(f"{name} get", lambda queue=queue, keys=keys: queue.get(conn, keys).items())
            leave(f"{name} feed", lambda feed=feed: [row for one in feed.read(conn, after={}) for row in one.rows])
            leave(f"{name} snapshot", lambda feed=feed: feed.snapshot(conn)[1])
            for options in ([], ["--json"]):
                leave(f"{name} tail {options}", lambda o=options, n=name: printed("feed", "tail", f"{n}_feed", *o))
            leave(f"{name} values command", lambda n=name: printed("values", n))
            leave(f"{name} top command", lambda n=name: printed("top", n, "--by", {"x": "at", "y": "n"}[n], "--json"))

            def stream(name: str = name) -> list[str]:
                found = []
                with client.stream("GET", f"/feeds/{name}_feed", params={"after": "{}"}) as answer:
                    for line in answer.iter_lines():
                        if line.startswith("event: "):
                            found.append(line)
                            assert line == "event: change", line
                            if len(found) == ROWS:
                                break
                return found

            leave(f"{name} events", stream)
            entries: list[Any] = []
            leave(f"{name} python", lambda n=name, e=entries: ExportWorker(dsn, f"{n}_python", e.extend).drain() and e)
            (tmp_path / name).mkdir()

            def files(name: str = name) -> list[str]:
                ExportWorker(dsn, f"{name}_files", target=str(tmp_path / name)).drain()
                return [line for file in (tmp_path / name).iterdir() for line in file.read_text().splitlines()]

            leave(f"{name} files", files)

            def posts(name: str = name) -> list[Any]:
                receiver.asked.clear()
                ExportWorker(dsn, f"{name}_webhook", target=receiver.url).drain()
                return [entry for _, body in receiver.asked for entry in json.loads(body, parse_int=str)["entries"]]

            leave(f"{name} webhook", posts)

            def table(name: str = name) -> list[Any]:
                ExportWorker(dsn, f"{name}_postgres", target=other).drain()
                with psycopg.connect(other) as there:
                    return there.execute(f"select t::text from {name}_postgres t".encode()).fetchall()  # noqa: S608

            leave(f"{name} postgres", table)
            quarantined = conn.execute(
                "select count(*) from pgcombine.export_entry where starts_with(export, %s)", (name,)
            ).fetchone()
            if quarantined != (0,):
                failed[f"{name} quarantine of exports"] = str(quarantined)
            leave(
                f"{name} replicated",
                lambda n=name, keys=keys: ReplicatedQueue({"a": dsn}, n, level="ONE").get(keys).values.items(),
            )
        leave("x get command", lambda: printed("get", "x", *(f"k{i}" for i in range(ROWS)), "--json"))
    assert not failed, "\n".join(f"{k}: {v}" for k, v in failed.items())
    assert all(seen.values())
    for way in ("get", "observer", "snapshot", "values", "feed", "events", "python", "webhook", "postgres"):
        assert len(seen[f"x {way}"]) == ROWS, way
    for way in ("observer", "snapshot", "values"):
        assert len(seen[f"y {way}"]) == ROWS, way


@embedded_only
def test_quarantined_updates_are_shown(conn: psycopg.Connection, dsn: str) -> None:
    conn.execute(
        "select pgcombine.create_queue('q', array['k date', 'r daterange'], array['t time max'], buckets => 1)"
    )
    for moment in ("infinity", "0044-03-15 BC"):
        conn.execute("insert into pgcombine.q_updates values (%s, '[infinity,)', '24:00')", (moment,))
        hold(conn, "q", k=moment, r="[infinity,)")
    env = {"PGCOMBINE_DSN": dsn}
    for command in (("ls",), ("ls", "--json")):
        done = run_cli("quarantine", *command, env=env)
        assert done.returncode == 0, done.stderr
        assert "0044-03-15 BC" in done.stdout
    done = run_cli("quarantine", "show", "q", '["infinity", "[infinity,)"]', env=env)
    assert done.returncode == 0, done.stderr
    assert "24:00:00" in done.stdout
    with served(dsn) as client:
        assert "0044-03-15 BC" in client.get("/queues/q").text
        (number, *_) = [number for (number,) in conn.execute("select id from pgcombine.quarantined_key").fetchall()]
        assert "24:00:00" in client.get(f"/queues/q/quarantine/{number}").text


def test_value_without_an_object_is_postgresqls_text(conn: psycopg.Connection) -> None:
    """Python gets the text of the whole value, and may pass it on. The connection keeps its own loaders."""
    queue = CombineQueue("d", key=["k date", "r daterange"], value=["a date[] array_union", "n numeric sum"])
    queue.create(conn)
    day = date(2024, 2, 29)
    rows = [
        (day, Range(day, None), [day], Decimal(1)),
        ("infinity", "[infinity,)", "{infinity,2024-02-29}", Decimal("NaN")),
    ]
    queue.enqueue(conn, rows)
    found = queue.get(conn, [row[:2] for row in rows])
    assert [str(found[row[:2]]) for row in rows] == [
        "([datetime.date(2024, 2, 29)], Decimal('1'))",
        "('{2024-02-29,infinity}', Decimal('NaN'))",
    ]
    with pytest.raises(psycopg.DataError):
        conn.execute("select date 'infinity'").fetchone()
    assert one(conn, "select date '2024-02-29'") == day
