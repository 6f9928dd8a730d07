"""Spans of passes, deliveries and loads for OpenTelemetry.

Spans are made if the program has imported OpenTelemetry, as ``opentelemetry-instrument pgcombine worker`` does.
Otherwise nothing is imported, and a span costs one look-up in a dictionary. Names and attributes follow the semantic
conventions for messaging (https://opentelemetry.io/docs/specs/semconv/messaging/messaging-spans/). A span contains no
key and no value.

A pass isn't linked to the spans of the programs that enqueued its updates. A queue's log doesn't store these spans,
since they would make each update larger.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_TYPES = {"combine": "process", "deliver": "send", "load": "send"}


@contextmanager
def span(operation: str, destination: str, partition: int | None = None) -> Iterator[Callable[[int], None]]:
    """Run the block in a span. Yields a function that takes the number of updates or entries.

    ``operation`` is ``combine``, ``deliver`` or ``load``. ``destination`` is the queue, or for ``deliver`` the name
    under which entries are delivered, and ``partition`` is the bucket. If the block raises, the span gets the SQLSTATE
    or the class of the exception, but not its text, which may contain keys. The exception is raised again.
    """
    if "opentelemetry.trace" not in sys.modules:
        yield lambda number: None
        return
    from opentelemetry import trace

    attributes: dict[str, str | int] = {
        "messaging.system": "pgcombine",
        "messaging.operation.name": operation,
        "messaging.operation.type": _TYPES[operation],
        "messaging.destination.name": destination,
    }
    if partition is not None:
        attributes["messaging.destination.partition.id"] = str(partition)
    kind = trace.SpanKind.CONSUMER if _TYPES[operation] == "process" else trace.SpanKind.PRODUCER
    tracer = trace.get_tracer("pgcombine")
    with tracer.start_as_current_span(
        f"{operation} {destination}",
        kind=kind,
        attributes=attributes,
        record_exception=False,
        set_status_on_exception=False,
    ) as current:
        try:
            yield lambda number: current.set_attribute("messaging.batch.message_count", number)
        except Exception as error:
            current.set_attribute("error.type", getattr(error, "sqlstate", None) or type(error).__name__)
            current.set_status(trace.StatusCode.ERROR)
            raise
