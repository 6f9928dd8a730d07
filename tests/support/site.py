"""Serve pgcombine's web pages in this process, request them over HTTP, and parse them."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from typing import Any

import httpx2

from pgcombine.web.serve import listening, serve
from support.sessions import in_background

# Keys that a page must show as text, such as markup, template syntax, right-to-left marks and control characters.
HOSTILE = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>'",
    "{{ 7 * 7 }}{% raw %}",
    "&lt;b&gt; &amp; </bdi></td></table>",
    "\u202egnp.txt\u2066\u200f",
    "\u05e9\u05dc\u05d5\u05dd",
    "\x01\x02\x1b[31m\x7f\u0085",
    "%(queue)s %s {0} ' ; drop table x; --",
    "line\nbreak\ttab",
    "\U0001f600\u0301\u0301",
    "x" * 2600,
]


@contextmanager
def served(dsn: str, **options: Any) -> Iterator[httpx2.Client]:
    """Serve the pages during the block, and yield an HTTP client for them. ``options`` are those of ``serve``."""
    stop = threading.Event()
    sock = listening("127.0.0.1", 0)
    url = f"http://127.0.0.1:{sock.getsockname()[1]}"
    with in_background(lambda: serve(dsn, sock, stop, version="0", **options)):
        try:
            with httpx2.Client(base_url=url, timeout=60, trust_env=False) as client:
                yield client
        finally:
            stop.set()


def address(client: httpx2.Client) -> str:
    """The origin of the pages: scheme, host and port."""
    return str(client.base_url).rstrip("/")


def form_key(client: httpx2.Client, page: str) -> str:
    """The value of the field ``form_key`` in a page's first form."""
    found = re.search(r'name="form_key" value="([^"]+)"', client.get(page).text)
    assert found, f"{page} has no form"
    return found[1]


def post(client: httpx2.Client, path: str, key: str, **fields: str) -> httpx2.Response:
    """Post a form with the headers ``Origin`` and ``Sec-Fetch-Site``, as a browser does."""
    headers = {"Origin": address(client), "Sec-Fetch-Site": "same-origin"}
    return client.post(path, data={"form_key": key, **fields}, headers=headers)


# elements whose text is separated from the text before them
_BLOCKS = {"p", "li", "tr", "th", "td", "dt", "dd", "h1", "h2", "div", "button", "summary", "figcaption", "caption"}


class Reader(HTMLParser):
    """A parser of a page. ``tags`` has the start tags with their attributes, ``text`` the text with single spaces."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self._parts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        self._parts.append(" " if tag in _BLOCKS else "")

    def handle_data(self, data: str) -> None:
        self._parts.append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(self._parts).split())

    def all(self, tag: str) -> list[dict[str, str]]:
        """The attributes of each element with this tag."""
        return [attrs for name, attrs in self.tags if name == tag]


def read(answer: httpx2.Response) -> Reader:
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    reader = Reader()
    reader.feed(answer.text)
    reader.close()
    return reader


def is_ended(one: socket.socket) -> bool:
    """Whether the server ends the connection within a minute."""
    one.settimeout(60)
    try:
        while one.recv(65536):
            pass
    except ConnectionResetError:
        pass
    return True
