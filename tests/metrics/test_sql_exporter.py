"""The file for sql_exporter: the names, queries and columns are those of ``/metrics``, and every query runs."""

from __future__ import annotations

from importlib import resources
from typing import Any

import psycopg
import pytest
import yaml
from psycopg.rows import dict_row

from pgcombine.database import sqlfiles
from pgcombine.metrics.names import OF_THE_DATABASE

COLLECTOR = yaml.safe_load(resources.files("pgcombine.metrics").joinpath("pgcombine.collector.yml").read_text("utf-8"))
QUERIES: dict[str, str] = {query["query_name"]: query["query"] for query in COLLECTOR["queries"]}
# What sql_exporter reads of a metric; it refuses other fields.
FIELDS = {"metric_name", "type", "help", "key_labels", "values", "query_ref"}


def test_the_metrics_are_the_same() -> None:
    assert set(COLLECTOR) == {"collector_name", "min_interval", "metrics", "queries"}
    fields = ("metric_name", "type", "help", "query_ref", "values")
    found = [(*(one[field] for field in fields), one.get("key_labels", [])) for one in COLLECTOR["metrics"]]
    assert found == [
        (gauge.name, gauge.kind, gauge.help, gauge.query, [gauge.column], list(gauge.labels))
        for gauge in OF_THE_DATABASE
    ]
    assert [set(one) - FIELDS for one in COLLECTOR["metrics"]] == [set()] * len(found)
    assert {name: sqlfiles.query(name) for name in QUERIES} == QUERIES
    assert set(QUERIES) == {gauge.query for gauge in OF_THE_DATABASE}


@pytest.mark.usefixtures("busy")
@pytest.mark.parametrize("name", QUERIES)
def test_a_query_returns_its_columns(conn: psycopg.Connection, name: str) -> None:
    """sql_exporter prepares a query, scans labels as text and values as numbers, and leaves out null."""
    cursor = conn.cursor(row_factory=dict_row)
    rows: list[dict[str, Any]] = cursor.execute(QUERIES[name].encode(), prepare=True).fetchall()
    assert rows
    wanted = [one for one in COLLECTOR["metrics"] if one["query_ref"] == name]
    assert rows[0].keys() == {column for one in wanted for column in [*one.get("key_labels", ()), *one["values"]]}
    for row in rows:
        for one in wanted:
            assert all(isinstance(row[label], str) for label in one.get("key_labels", ()))
            assert isinstance(float(row[one["values"][0]]), float)
