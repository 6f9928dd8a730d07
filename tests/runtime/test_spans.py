"""Spans of passes and deliveries, as OpenTelemetry's SDK records them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import psycopg
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from support.queues import add

import pgcombine
from pgcombine.database.connect import connect
from pgcombine.errors import PassError
from pgcombine.worker.passes import open_connection, run_pass


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    """The spans that ended during the test."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    yield exporter
    provider.shutdown()


def attributes(span: ReadableSpan) -> dict[str, object]:
    assert span.attributes is not None
    return {name.removeprefix("messaging."): value for name, value in span.attributes.items()}


@pytest.mark.wc(buckets=1)
def test_pass_has_a_span(conn: psycopg.Connection, dsn: str, spans: InMemorySpanExporter) -> None:
    add(conn, [("a", 1), ("b", 2), ("a", 3)])
    seen = []
    queue = pgcombine.CombineQueue("wc")

    @queue.on_change
    def look(tx: object, changes: object) -> None:
        with trace.get_tracer("user").start_as_current_span("mine"):
            seen.append(changes)

    pgcombine.drain(dsn, queue)
    (combined,) = [span for span in spans.get_finished_spans() if span.attributes and "batch" in str(span.attributes)]
    assert combined.name == "combine wc"
    assert combined.kind is trace.SpanKind.CONSUMER
    assert attributes(combined) == {
        "system": "pgcombine",
        "operation.name": "combine",
        "operation.type": "process",
        "destination.name": "wc",
        "destination.partition.id": "0",
        "batch.message_count": 3,
    }
    (mine,) = [span for span in spans.get_finished_spans() if span.name == "mine"]
    assert seen
    assert mine.parent is not None
    assert combined.context is not None
    assert mine.parent.span_id == combined.context.span_id


@pytest.mark.wc(buckets=1)
def test_span_of_a_failure_has_no_key(conn: psycopg.Connection, dsn: str, spans: InMemorySpanExporter) -> None:
    conn.execute("create table mail (email text primary key)")
    conn.execute("insert into mail values ('a@b.c')")
    conn.execute("select pgcombine.add_observer('wc', 'bad', 'insert into public.mail select word from changes')")
    add(conn, {"a@b.c": 1})
    with open_connection(dsn) as connection, pytest.raises(PassError):
        run_pass(connection, "wc", 0)
    (failed,) = spans.get_finished_spans()
    assert attributes(failed)["error.type"] == "23505"
    assert failed.status.status_code is trace.StatusCode.ERROR
    assert failed.status.description is None
    assert failed.events == ()
    assert "a@b.c" not in failed.to_json()


@pytest.mark.wc(buckets=1)
def test_delivery_has_a_span(conn: psycopg.Connection, dsn: str, spans: InMemorySpanExporter) -> None:
    with connect(dsn) as connection:
        pgcombine.ExportQueue("log", queue="wc").create(connection)
    add(conn, {"a": 1, "b": 2})
    pgcombine.drain(dsn, "wc")
    spans.clear()
    assert pgcombine.ExportWorker(dsn, "log", lambda entries: None).drain() == 2
    (sent,) = spans.get_finished_spans()
    assert (sent.name, sent.kind) == ("deliver log", trace.SpanKind.PRODUCER)
    assert attributes(sent)["batch.message_count"] == 2


def test_package_imports_no_telemetry() -> None:
    program = "import sys, pgcombine, pgcombine.worker.worker, pgcombine.export; print('opentelemetry' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_spans_are_off_without_an_sdk() -> None:
    program = """
from opentelemetry import trace
from pgcombine.runtime.spans import span
with span("combine", "wc") as tell:
    tell(1)
    print(trace.get_current_span().is_recording())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
