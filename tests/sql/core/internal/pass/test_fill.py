"""``fill`` replaces names in braces in templates of generated SQL, and keeps braces in users' texts."""

from __future__ import annotations

import psycopg
import pytest
from psycopg.types.json import Jsonb
from support.queues import combine_all, make_queue, one

ODD = {"key": ['"a {updates} %1$s" text'], "value": ['"n {values}" bigint sum'], "delete_when": None}


@pytest.mark.parametrize(
    ("template", "filled"),
    [
        ("select {keys}", "select {values} %s"),
        ("{keys}{nothing}{keys}", "{values} %s{values} %s"),
        ("'{}' || '{1,2}' || {other}", "'{}' || '{1,2}' || {other}"),
        ("{keys", "{keys"),
        ("keys} {", "keys} {"),
        ("", None),
    ],
)
def test_fill_replaces_known_names_once(tx: psycopg.Connection, template: str, filled: str | None) -> None:
    parts = Jsonb({"keys": "{values} %s", "values": "wrong", "nothing": None})
    assert one(tx, "select nullif(pgcombine_internal.fill(%s, %s), '')", template, parts) == filled


def test_braces_in_users_names_and_observers_are_kept(tx: psycopg.Connection) -> None:
    make_queue(tx, **ODD)  # type: ignore[arg-type]
    tx.execute("create table seen (what text)")
    statement = """insert into seen select '{updates}{values}{brace}{' || "new_n {values}" from changes"""
    tx.execute("select pgcombine.add_observer('wc', '{tail}', %s)", (statement,))
    tx.execute("insert into pgcombine.wc_updates values ('{held}', 2), ('{held}', 3)")
    combine_all(tx)
    assert tx.execute("select * from pgcombine.wc_current").fetchall() == [("{held}", 5)]
    assert one(tx, "select what from seen") == "{updates}{values}{brace}{5"
    assert one(tx, "select count(*) from pgcombine.verify('wc')") == 0
