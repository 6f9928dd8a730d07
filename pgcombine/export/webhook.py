"""Export by HTTP. Each batch is a POST of ``{"export": …, "entries": [{key columns, old_…, new_…, "seq"}, …]}``, or of
CloudEvents (:mod:`pgcombine.export.cloudevents`).

Requests follow Standard Webhooks (:mod:`pgcombine.export.signing`). The header ``webhook-id``, which is also sent as
``Idempotency-Key``, is made of the export and a digest of the body. If a receiver has handled a batch with the same id
before, the receiver may answer 2xx and do nothing. After a failure, a batch may have some entries of an earlier batch.
So a receiver for which a repeated entry isn't harmless must also compare ``seq`` for each key.

An answer 2xx means that the batch is delivered. An answer 4xx, except for those in ``_HEALTH``, refuses the data:
DeliveryRejectedError. Other answers, a receiver that is too slow, network errors, an invalid URL, and secrets that are
malformed or can't be read are DestinationDownError: such a failure may end with time, or when an operator corrects the
address, the rights or the secrets. Only the beginning of an answer's body is read, and it isn't decompressed. Without
the extra ``http``, ConfigError is raised.
"""

from __future__ import annotations

import asyncio
import contextvars
import hashlib
import logging
import threading
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from pgcombine.errors import ConfigError, DeliveryRejectedError, DestinationDownError, pip_install
from pgcombine.export import signing
from pgcombine.export.cloudevents import CONTENT_TYPE, CloudEvents
from pgcombine.export.entries import TIMEOUT_SECONDS, Entry, Interrupted
from pgcombine.runtime.printable import printable

if TYPE_CHECKING:
    import httpx2

_HEALTH = frozenset({401, 403, 404, 405, 407, 408, 410, 421, 425, 429})
_SHOWN = 200  # the most characters of an answer's body that an error shows
_BODY_BYTES = 64 * 1024  # bytes of an answer's body after which reading ends
_BODY_SECONDS = 1.0  # the longest time for reading an answer's body; the status alone is enough
_LOOK_SECONDS = 0.1  # seconds; the longest time between two checks of the deadline and of the stop event
_END_SECONDS = 1.0  # the longest wait for connections to close
# Child loggers are listed, too, since the filter of a logger doesn't apply to its child loggers.
_LOGGERS = ("httpx2", *(f"httpcore2.{name}" for name in ("connection", "http11", "http2", "proxy", "socks")))

T = TypeVar("T")
_delivers = contextvars.ContextVar("_delivers", default=False)


class _Answer(NamedTuple):
    status: int
    reason: str
    body: str
    retry_after: float | None


class WebhookExporter:
    """POSTs to ``url``. ``headers`` are added to each request, for example a token.

    ``timeout``, in seconds, is for a whole delivery: looking up the host name, connecting, the request and the answer.
    Connecting may take half of it. When ``stop`` is set, a delivery in progress is given up, and Interrupted is raised.

    Put credentials into ``headers`` or ``~/.netrc``, not into the registered URL.

    ``secrets`` sign the requests. If they can't be read, nothing is sent. ``events`` makes the bodies, if given.
    """

    def __init__(
        self,
        url: str,
        export: str,
        *,
        timeout: float = TIMEOUT_SECONDS,
        headers: Mapping[str, str] | None = None,
        stop: threading.Event | None = None,
        secrets: signing.Secrets | None = None,
        events: CloudEvents | None = None,
    ) -> None:
        try:
            import httpx2
        except ImportError as error:
            raise ConfigError(f"the exporter webhook needs httpx2: {pip_install('http')}") from error
        self._httpx = httpx2
        self._url = url
        self._export = export
        self._timeout = timeout
        self._headers = dict(headers or {})
        self._stop = stop or threading.Event()
        self._secrets = secrets
        self._events = events
        self._loop: asyncio.AbstractEventLoop | None = None
        self._client: httpx2.AsyncClient | None = None
        for name in _LOGGERS:
            logging.getLogger(name).addFilter(_not_ours)

    def deliver(self, entries: Sequence[Entry]) -> None:
        """Deliver the entries as one request."""
        deadline = time.monotonic() + self._timeout
        if self._events is None:
            body = f'{{"export": "{self._export}", "entries": [{", ".join(entry.json for entry in entries)}]}}'.encode()
        else:
            body = self._events.batch(entries).encode()
        try:
            keys = signing.keys(self._secrets)
        except Exception as error:  # a function that fetches secrets may raise any exception
            raise DestinationDownError(f"the webhook's secrets: {type(error).__name__}: {error}") from error
        message = f"{self._export}-{hashlib.sha256(body).hexdigest()[:32]}"
        headers = {
            **self._headers,
            **signing.headers(message, body, keys, time.time()),
            "Content-Type": "application/json" if self._events is None else CONTENT_TYPE,
            "Idempotency-Key": message,
            "Accept-Encoding": "identity",
        }
        found = self._run(self._post(body, headers))
        while not found.done():
            if self._stop.is_set() or time.monotonic() >= deadline:
                found.cancel()
                self.close()
                if self._stop.is_set():
                    raise Interrupted(f'export "{self._export}" was stopped during a delivery')
                raise DestinationDownError(f"the delivery took more than {self._timeout:g} s")
            wait([found], min(_LOOK_SECONDS, max(0.0, deadline - time.monotonic())))
        try:
            answer = found.result()
        except (self._httpx.HTTPError, self._httpx.InvalidURL, OSError) as error:
            self.close()
            raise DestinationDownError(f"{type(error).__name__}: {error}".rstrip(": ")) from error
        if 200 <= answer.status < 300:
            return
        reason = printable(f"HTTP {answer.status} {answer.reason}: {answer.body}".strip(" :\n"))
        if 400 <= answer.status < 500 and answer.status not in _HEALTH:
            raise DeliveryRejectedError(reason)
        down = DestinationDownError(reason)
        down.retry_after = answer.retry_after
        raise down

    def close(self) -> None:
        """Close the connections."""
        if self._loop is None:
            return
        ended = self._run(self._end())
        # The loop stops after _end(). An earlier stop would leave coroutines that are never awaited.
        ended.add_done_callback(partial(_stop, self._loop))
        wait([ended], _END_SECONDS)
        self._loop = self._client = None

    def _run(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Start a coroutine in this exporter's event loop, which runs in a daemon thread.

        The event loop can give up the look-up of a host name, a handshake or a read at any time.
        """
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._loop.set_default_executor(_Daemons())
            threading.Thread(target=_serve, args=(self._loop,), name="pgcombine-webhook", daemon=True).start()
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    async def _post(self, content: bytes, headers: dict[str, str]) -> _Answer:
        _delivers.set(True)
        if self._client is None:
            # This timeout ends a slow attempt to connect. A cancellation of the attempt would leave the socket open.
            self._client = self._httpx.AsyncClient(timeout=self._httpx.Timeout(None, connect=self._timeout / 2))
        async with self._client.stream("POST", self._url, content=content, headers=headers) as answer:
            body = bytearray()
            try:
                async with asyncio.timeout(_BODY_SECONDS):
                    async for chunk in answer.aiter_raw():
                        body += chunk
                        if len(body) >= _BODY_BYTES:
                            break
            except (TimeoutError, self._httpx.HTTPError):
                pass  # the status is known, and the body isn't needed
            if answer.headers.get("Content-Encoding", "identity") != "identity":
                body.clear()
            return _Answer(
                answer.status_code,
                answer.reason_phrase,
                body.decode(errors="replace")[:_SHOWN],
                _seconds(answer.headers.get("Retry-After", "")),
            )

    async def _end(self) -> None:
        # A delivery in progress is cancelled already, and ends its subtasks. The subtasks aren't cancelled here: a task
        # that is cancelled before its first step leaves a coroutine that is never awaited.
        while others := asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.wait(others)
        if self._client is not None:
            await self._client.aclose()
        await asyncio.get_running_loop().shutdown_asyncgens()
        await asyncio.sleep(0.01)  # the loop needs some rounds to close its connections


class _Daemons(ThreadPoolExecutor):
    """Looks up host names in daemon threads, since a look-up may take long, and the program's end must not wait."""

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        done: Future[T] = Future()

        def run() -> None:
            try:
                result = fn(*args, **kwargs)
            except BaseException as error:
                done.set_exception(error)
            else:
                done.set_result(result)

        done.set_running_or_notify_cancel()
        threading.Thread(target=run, name="pgcombine-lookup", daemon=True).start()
        return done


def _seconds(retry_after: str) -> float | None:
    """Return the seconds that a header ``Retry-After`` asks to wait, or None without a valid one."""
    given = retry_after.strip()
    if given.isascii() and given.isdecimal():
        return float(given[:9])
    with suppress(ValueError, OverflowError):
        until = parsedate_to_datetime(given if given.endswith("GMT") else "")  # other texts give strange dates
        return max(0.0, (until.replace(tzinfo=until.tzinfo or UTC) - datetime.now(UTC)).total_seconds())
    return None


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
    finally:
        loop.close()


def _stop(loop: asyncio.AbstractEventLoop, _: Future[None]) -> None:
    loop.call_soon_threadsafe(loop.stop)


def _not_ours(_: logging.LogRecord) -> bool:
    """Whether a log record of the HTTP client comes from another part of the program.

    Records of this exporter are dropped, because their URLs and headers may contain a token.
    """
    return not _delivers.get()
