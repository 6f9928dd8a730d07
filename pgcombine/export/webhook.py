"""Export by HTTP: each batch is POSTed as JSON, ``{"export": …, "entries": [{key columns, old_…, new_…, "seq"}, …]}``.

The header ``Idempotency-Key`` is the same if and only if the batch is: a receiver may answer a known one without doing
anything. Batches overlap after a failure, so a receiver that isn't idempotent otherwise compares ``seq`` per key.

2xx: delivered. 400, 409, 413, 415, 422 and other 4xx: the data is refused, DestinationRejected. 5xx, 3xx, 401, 403,
404, 405, 407, 408, 410, 421, 425, 429, timeouts and everything below HTTP: DestinationDown, since trying again, or
somebody's correction of the address or the rights, helps. Needs the extra ``http``; ConfigError without it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pgcombine.errors import ConfigError, DestinationDown, DestinationRejected
from pgcombine.export.entries import TIMEOUT_SECONDS, Entry

if TYPE_CHECKING:
    import httpx

_HEALTH = frozenset({401, 403, 404, 405, 407, 408, 410, 421, 425, 429})
_SHOWN = 200  # characters of an answer


class WebhookExporter:
    """POSTs to ``url``; ``timeout``, in seconds, bounds each step of a request; ``headers`` are added (a token, say).

    Credentials belong into ``headers``, or ``~/.netrc``, not into the registered URL.
    """

    def __init__(
        self, url: str, export: str, *, timeout: float = TIMEOUT_SECONDS, headers: Mapping[str, str] | None = None
    ) -> None:
        try:
            import httpx
        except ImportError as error:
            raise ConfigError("the exporter webhook needs httpx: pip install 'pgcombine[http]'") from error
        self._httpx = httpx
        self._url = url
        self._export = export
        self._timeout = timeout
        self._headers = dict(headers or {})
        self._client: httpx.Client | None = None

    def deliver(self, entries: Sequence[Entry]) -> None:
        """POST one request."""
        body = f'{{"export": "{self._export}", "entries": [{", ".join(entry.json for entry in entries)}]}}'.encode()
        key = f"{self._export}-{hashlib.sha256(body).hexdigest()[:32]}"
        headers = {**self._headers, "Content-Type": "application/json", "Idempotency-Key": key}
        if self._client is None:
            self._client = self._httpx.Client(timeout=self._timeout)
        try:
            answer = self._client.post(self._url, content=body, headers=headers)
        except (self._httpx.HTTPError, self._httpx.InvalidURL) as error:
            self.close()
            raise DestinationDown(f"{type(error).__name__}: {error}") from error
        if answer.is_success:
            return
        reason = f"HTTP {answer.status_code} {answer.reason_phrase}: {answer.text[:_SHOWN]}".strip(" :")
        if answer.is_client_error and answer.status_code not in _HEALTH:
            raise DestinationRejected(reason)
        raise DestinationDown(reason)

    def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            self._client.close()
            self._client = None
