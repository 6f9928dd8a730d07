"""Feeds as server-sent events: ``GET /feeds/<name>``.

An event ``change`` has a change as its data, and its id is the offset after the change. A client that connects again
sends the last id, and gets the changes after it. An event ``error`` is the last of its stream. A stream takes a
connection of the pool only for each look at the database, and ends after a while, since a client must read its answer
within a limited time.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator
from typing import Any

import psycopg
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from pgcombine.errors import PgCombineError, first_line, translate
from pgcombine.feed.feed import Batch, Feed
from pgcombine.runtime.printable import to_json
from pgcombine.web.connections import ANSWER_SECONDS
from pgcombine.web.pages import Site, site_of

MOST_STREAMS = 20  # streams at the same time
MOST_CHANGES = 500  # changes that are in memory for a stream
POLL_SECONDS = 1.0  # between two looks of a stream that has sent all changes
HEARTBEAT_SECONDS = 15.0
STREAM_SECONDS = ANSWER_SECONDS * 0.8
TYPE = "text/event-stream"
_BUCKET = re.compile("[0-9]{1,9}")

Offset = dict[str, int]


class _Stream(StreamingResponse):
    """A stream of events. While it is sent, it counts toward MOST_STREAMS."""

    def __init__(self, site: Site, content: AsyncIterator[str]) -> None:
        super().__init__(content, media_type=TYPE, headers={"X-Accel-Buffering": "no"})  # nginx would hold events back
        self._site = site

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._site.streams += 1
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._site.streams -= 1


async def feed(request: Request) -> Response:
    """Send the changes after the header Last-Event-ID, else after the parameter ``after``, else those from now on."""
    site = site_of(request)
    given = _offset(request.headers.get("last-event-id") or request.query_params.get("after"))
    wanted = Feed(request.path_params["feed"])

    def begun() -> Offset:
        """Return where the stream begins. Raises if the offset is invalid or too old."""

        def work(connection: Any) -> Offset:
            present = wanted.offset(connection, given)
            return present if given is None else given

        return site.database.run(work)

    after = await run_in_threadpool(begun)
    if site.streams >= MOST_STREAMS:
        raise HTTPException(503, f"There are {MOST_STREAMS} streams already.")
    if request.method == "HEAD":
        return Response(media_type=TYPE)
    return _Stream(site, _events(site, wanted, after))


async def _events(site: Site, wanted: Feed, after: Offset) -> AsyncIterator[str]:
    def read(after: Offset) -> Batch | None:
        return site.database.run(lambda connection: next(wanted.read(connection, after=after, most=MOST_CHANGES), None))

    end = time.monotonic() + STREAM_SECONDS
    sent = time.monotonic()
    yield f"id: {_text(after)}\n: the changes after this offset\n\n"
    while time.monotonic() < end and not site.stop.is_set():
        try:
            batch = await run_in_threadpool(read, after)
        except (PgCombineError, psycopg.Error) as error:
            mapped = translate(error) if isinstance(error, psycopg.Error) else error
            told = {"sqlstate": getattr(mapped or error, "sqlstate", None), "message": str(mapped or first_line(error))}
            yield f"event: error\ndata: {to_json(told)}\n\n"
            return
        for row in batch.rows if batch else ():
            after[str(row["_bucket"])] = row["_sequence"]
            yield f"id: {_text(after)}\nevent: change\ndata: {to_json(row)}\n\n"
        if batch:
            after = batch.after
            sent = time.monotonic()
            continue
        if time.monotonic() > sent + HEARTBEAT_SECONDS:
            yield ": nothing new\n\n"
            sent = time.monotonic()
        await asyncio.sleep(POLL_SECONDS)


def _offset(text: str | None) -> Offset | None:
    if text is None:
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or not all(_BUCKET.fullmatch(one) and type(found[one]) is int for one in found):
        raise HTTPException(400, "The offset isn't an object of sequences by bucket.")
    return found


def _text(offset: Offset) -> str:
    return json.dumps(offset, separators=(",", ":"))
