"""All sinks write the extreme values of each type unchanged, in any zone, as scalars and in arrays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql
from support.queues import make_queue
from support.servers import embedded_only

from .conftest import Write
from .frames import JDBC

pytestmark = [pytest.mark.spark, pytest.mark.slow, embedded_only]


def _same(*values: str) -> dict[str, str]:
    return {value: value for value in values}


# Dates at the ends of both ranges, around the beginning of the Gregorian calendar in Java, and around BC: as Spark and
# as PostgreSQL write them
_DAYS = {
    "-4712-01-01": "4713-01-01 BC",
    "-0001-01-01": "0002-01-01 BC",
    "0000-02-29": "0001-02-29 BC",
    "0000-12-31": "0001-12-31 BC",
    "+10000-01-01": "10000-01-01",
    **{f"1582-10-{day:02}": f"1582-10-{day:02}" for day in range(3, 17)},
    **_same(
        "0001-01-01", "1500-02-28", "1500-03-01", "1900-02-28", "1969-12-31", "1970-01-01", "2011-12-30", "9999-12-31"
    ),
}
_FAR_DAYS = {"-4713-11-24": "4714-11-24 BC", "+5874897-12-31": "5874897-12-31"}
_TIMES = ("00:00:00", "02:30:00.5", "23:59:59.999999")
_ODD_HOURS = {one: one for one in ("2024-03-10 02:30:00", "2024-11-03 01:30:00", "1883-11-18 12:01:00")}


def _moments() -> dict[str, str]:
    """Dates with times."""
    made = {"+294246-12-31 23:59:59.999999": "294246-12-31 23:59:59.999999", **_ODD_HOURS}
    for day, there in _DAYS.items():
        for time in _TIMES:
            date, _, era = there.partition(" ")
            made[f"{day} {time}"] = f"{date} {time} {era}".strip()
    return made


_TEXTS = _same(
    "", " ", "a ", "NULL", "null", '"', "'", "\\", "\\N", "\\.", "{}", "{a,b}", ",", "a\nb\r\tc", "é😀", "%s$1?:x"
)
_FLOATS = _same("NaN", "Infinity", "-Infinity", "0.1", "-0.0", "1.0E-45", "3.4028235E38", "16777217", "1.1754944E-38")
_DOUBLES = _same(
    *("NaN", "Infinity", "-Infinity", "0.1", "-0.0", "4.9E-324", "1.7976931348623157E308", "2.2250738585072014E-308"),
    *("1.2345678901234567", "9007199254740993", "0.30000000000000004", "123456789012345680.0"),
)
_DECIMALS = _same("9" * 38, "-" + "9" * 38, "0", "1")
_SMALL = _same("0." + "0" * 37 + "1", "-0." + "9" * 38, "0." + "1234567890" * 3 + "12345678")
# (type of the column, type in Spark, values: Spark's text and PostgreSQL's text)
_TYPES: list[tuple[str, str, dict[str, str]]] = [
    ("smallint", "tinyint", _same("-128", "127")),
    ("smallint", "smallint", _same("-32768", "32767")),
    ("integer", "int", _same("-2147483648", "2147483647")),
    ("bigint", "bigint", _same("-9223372036854775808", "9223372036854775807", "9007199254740993")),
    ("bigint", "decimal(19,0)", _same("-9223372036854775808", "9223372036854775807")),
    ("numeric", "bigint", _same("-9223372036854775808", "9223372036854775807")),
    ("numeric", "decimal(38,0)", _DECIMALS),
    ("numeric", "decimal(38,38)", _SMALL),
    ("numeric(38,10)", "decimal(20,10)", _same("1.0000000001", "-9999999999.9999999999")),
    ("numeric", "double", _same("NaN", "-Infinity", "0.1", "1.2345678901234567", "0.30000000000000004")),
    ("numeric", "float", _same("NaN", "Infinity", "0.1", "1234567.9", "-0.001")),
    ("money", "decimal(18,2)", _same("-1234567.89", "0.01")),
    ("real", "float", _FLOATS),
    ("double precision", "float", _same("0.1", "NaN")),
    ("double precision", "double", _DOUBLES),
    ("double precision", "bigint", _same("9007199254740992")),
    ("boolean", "boolean", _same("true", "false")),
    ("date", "date", {**_DAYS, **_FAR_DAYS}),
    ("timestamp", "timestamp_ntz", _moments()),
    ("timestamp", "date", _DAYS),
    ("timestamptz", "timestamp", {f"{given}Z": f"{there}+00" for given, there in _moments().items()}),
    ("text", "string", _TEXTS),
    ("varchar(20)", "string", _TEXTS),
    ("char(3)", "string", _same("abc", "a", "")),
    ("uuid", "string", _same("11111111-2222-3333-4444-555555555555")),
    ("jsonb", "string", _same('{"a": ["\\\\", "\\"", 1e400, null]}', '""')),
    ("time", "string", _same("24:00:00", "23:59:59.999999")),
    ("timetz", "string", _same("24:00:00+14", "00:00:00-15:59:59")),
    ("interval", "string", _same("-178000000 years", "1 mon -1 days +00:00:00.000001")),
    ("bytea", "binary", {"": r"\x", "00FF5C27": r"\x00ff5c27"}),
    ("int4range", "string", _same("empty", "(,)", "[-2147483648,2147483647)")),
    ("datemultirange", "string", _same("{}", "{[0044-03-15 BC,infinity)}")),
    ("inet", "string", _same("::1/64", "255.255.255.255")),
    ("varbit", "string", _same("", "0101")),
    ("public.mood", "string", _same("so, so", '"\\')),
]
# Spark's JDBC writer doesn't know arrays of these types
_UNKNOWN = {"money", "int4range", "datemultirange", "public.mood"}


@pytest.fixture
def zones(spark: Any) -> Any:
    """Spark's session and Java are in New York: an hour of some days doesn't exist, and old offsets have seconds."""
    java = spark._jvm.java.util.TimeZone
    before = java.getDefault()
    java.setDefault(java.getTimeZone("America/New_York"))
    settings = {"spark.sql.session.timeZone": "America/New_York", "spark.sql.legacy.timeParserPolicy": "LEGACY"}
    for name, value in settings.items():
        spark.conf.set(name, value)
    yield
    java.setDefault(before)
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    spark.conf.unset("spark.sql.legacy.timeParserPolicy")


@pytest.mark.parametrize("sink", [JDBC, "copy", "stream"])
def test_extreme_values_of_each_type_stay_equal(
    spark: Any, dsn: str, conn: psycopg.Connection, write: Write, tmp_path: Path, zones: None, sink: str
) -> None:
    conn.execute("""create type mood as enum ('so, so', '"\\'); set timezone = 'UTC'""")
    names = {f"c{n}": kind for n, (kind, _, _) in enumerate(_TYPES)}
    names |= {f"a{n}": f"{kind}[]" for n, (kind, _, _) in enumerate(_TYPES) if sink != "jdbc" or kind not in _UNKNOWN}
    value = [f"{name} {kind} last(at)" for name, kind in names.items()]
    make_queue(conn, key=["id int"], value=[*value, "at int max"], delete_when=None, buckets=1)
    # the row -1 has the arrays, and other rows have a value in each column
    given = {name: [*_TYPES[int(name[1:])][2]] for name in names}
    rows = [(-1, *([*given[name], None] if name[0] == "a" else None for name in names))]
    for number in range(max(map(len, given.values()))):
        rows.append((number, *(None if name[0] == "a" else (given[name][number:] or [None])[0] for name in names)))
    schema = ", ".join(["id int", *(f"{name} {'array<string>' if name[0] == 'a' else 'string'}" for name in names)])
    cast = []
    for name in names:
        kind = _TYPES[int(name[1:])][1]
        whole = kind if name[0] == "c" else f"array<{kind}>"
        binary = f"unhex({name})" if name[0] == "c" else f"transform({name}, x -> unhex(x))"
        cast.append(f"{binary if kind == 'binary' else f'cast({name} as {whole})'} as {name}")
    frame = spark.createDataFrame(rows, schema).selectExpr("id", *cast, "1 as at")
    if sink == "stream":
        (tmp_path / "files").mkdir()
        (tmp_path / "files" / "one.txt").write_text("one line")
        stream = spark.readStream.text(str(tmp_path / "files")).crossJoin(frame).drop("value")
        writer = stream.writeStream.format("pgcombine").option("checkpointLocation", str(tmp_path / "checkpoint"))
        writer.options(queue="wc", dsn=dsn).trigger(availableNow=True).start().awaitTermination()
    else:
        write(sink, frame)

    def column(query: str, kind: str, *parameters: Any) -> list[Any]:
        made = sql.SQL(query).format(sql.Identifier(f"{kind}{n}") if len(kind) == 1 else sql.SQL(kind))
        return [value for (value,) in conn.execute(made, parameters).fetchall()]

    wrong = []
    for n, (kind, given, values) in enumerate(_TYPES):
        there = column("select {}::text from pgcombine.wc_current where id >= 0 order by id", "c")[: len(values)]
        order = "select x::{}::text from unnest(%s::text[]) with ordinality x (x, n) order by n"
        pairs = zip(column(order, kind, [*values.values()]), there, strict=True)
        wrong += [(kind, given, wanted, one) for wanted, one in pairs if wanted != one]
        if f"a{n}" in names:
            array = column("select {}::text from pgcombine.wc_current where id < 0", "a")
            whole = column("select %s::text[]::{}::text", f"{kind}[]", [*values.values(), None])
            wrong += [(f"{kind}[]", given, whole[0], array[0])] if whole != array else []
    assert not wrong, "\n".join(map(str, wrong))
