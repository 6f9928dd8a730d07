"""Feeds as server-sent events: ``GET /feeds/<name>``.

The data of an event ``change`` is a change of the feed, and the event's id is the offset after this change. A client
that connects again sends the last id as Last-Event-ID, and gets the changes after it. A stream ends after an event
``error``, when the server ends, and after STREAM_SECONDS, since the time of an answer is limited. A stream uses a
connection to the database only while it reads.
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
MOST_CHANGES = 500  # greatest number of changes that a stream reads at a time
POLL_SECONDS = 1.0  # from a read that found no changes to the next read
HEARTBEAT_SECONDS = 15.0
STREAM_SECONDS = ANSWER_SECONDS * 0.8
TYPE = "text/event-stream"
_BUCKET = re.compile("[0-9]{1,9}")

Offset = dict[str, int]


class _Stream(StreamingResponse):
    """A stream of events. It counts toward MOST_STREAMS while it is sent."""

    def __init__(self, site: Site, content: AsyncIterator[str]) -> None:
        super().__init__(content, media_type=TYPE, headers={"X-Accel-Buffering": "no"})  # else nginx holds events back
        self._site = site

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._site.streams += 1
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._site.streams -= 1


async def feed(request: Request) -> Response:
    """Stream the changes after the offset in the header Last-Event-ID, else in the parameter ``after``.

    Without an offset, stream the changes from now on.
    """
    site = site_of(request)
    given = _offset(request.headers.get("last-event-id") or request.query_params.get("after"))
    wanted = Feed(request.path_params["feed"])

    def begun() -> Offset:
        """Check the given offset, and return the offset at which the stream begins."""

        def work(connection: Any) -> Offset:
            present = wanted.offset(connection, given)
            return present if given is None else given

        return site.database.run(work)

    after = await run_in_threadpool(begun)
    if site.streams >= MOST_STREAMS:
        raise HTTPException(503, f"There are {MOST_STREAMS} streams already. Try again when one has ended.")
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
        raise HTTPException(400, 'The offset must be a JSON object of sequences by bucket, such as {"0": 12}.')
    return found


def _text(offset: Offset) -> str:
    return json.dumps(offset, separators=(",", ":"))
