"""Odd bytes and numbers in paths, parameters, forms and headers cause no answer with a status of 500 or more."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from urllib.parse import quote_from_bytes

import httpx2
import pytest
from starlette.routing import Route
from support.servers import embedded_only
from support.site import address, form_key, served

from pgcombine.web import application
from pgcombine.web.guard import Keys

pytestmark = embedded_only
ODD = [
    *(b"\0", b"wc\0", b"\xff\xfe", b"\xed\xa0\x80", "²".encode(), "\u0661".encode(), "é".encode(), b"\r\nX: y"),
    *(b"", b" ", b"-1", b"1.5", b"1e3", b"9" * 19, b"9" * 30, b"9" * 5000, b"x" * 3000, b"../..", b"%", b"%00", b"%2f"),
    *(b"'; --", b"{}", b"[", b"http://[", b"\\\\x", b"//x", b"WC", b"wc;x=1"),
]
NAMES = ["by", "find", "done", "count", "next", "other"]
FIELDS = ["id", "all", "token", "next", "other"]


def routes() -> list[Route]:
    app = application.application(SimpleNamespace(keys=Keys()))._app
    return [route for route in app.routes if isinstance(route, Route)]


def paths(template: str, text: str) -> list[str]:
    """All paths of a route in which each parameter is a valid value or ``text``."""
    sound = {"{queue:name}": "wc", "{export:name}": "search", "{number:id}": "1"}
    found = [template]
    for place, usual in sound.items():
        found = [one.replace(place, part) for one in found for part in ({usual, text} if place in one else {""})]
    return found


ROUTES = [(route.path, method) for route in routes() for method in sorted(route.methods or ()) if method != "HEAD"]
FAST = {
    f"{application.QUEUE}/keys",
    f"{application.QUARANTINE}/{{number:id}}",
    f"{application.QUARANTINE}/retry",
    "/login",
}


@pytest.fixture
def client(busy: None, dsn: str) -> Iterator[httpx2.Client]:
    with served(dsn, actions=True) as client:
        yield client


@pytest.mark.parametrize(
    ("path", "method"), [pytest.param(*route, marks=[] if route[0] in FAST else [pytest.mark.slow]) for route in ROUTES]
)
def test_odd_paths_cause_no_defect(client: httpx2.Client, path: str, method: str) -> None:
    key = form_key(client, "/doctor")
    headers = {"Origin": address(client), "Content-Type": "application/x-www-form-urlencoded"}
    seen = set()
    for odd in map(quote_from_bytes, ODD):
        for where in paths(path, odd):
            if method == "GET":
                asked = [(f"{where}{query}", b"") for query in ["", *[f"?{name}={odd}" for name in (*NAMES, odd)]]]
            else:
                forms = [f"form_key={key}&{name}={odd}" for name in FIELDS]
                asked = [(where, form.encode()) for form in [*forms, odd, f"form_key={odd}"]]
            for url, body in asked:
                answer = client.request(method, url, content=body, headers=headers if method == "POST" else {})
                assert answer.status_code < 500, (method, url, body, answer.text)
                seen.add(answer.status_code)
    assert seen


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("name", ["host", "origin", "cookie", "authorization"])
def test_odd_headers_cause_no_defect(busy: None, dsn: str, name: str, method: str) -> None:
    with served(dsn, token="a token of some length") as client:
        for odd in ODD:
            value = odd.replace(b"\0", b"\x80").replace(b"\r\n", b" ").strip() or b"-"
            headers: list[tuple[bytes, bytes]] = [(b"Content-Type", b"application/x-www-form-urlencoded")]
            headers.append((name.encode(), (b"Bearer " if name == "authorization" else b"") + value[:200]))
            answer = client.request(method, "/login", content=b"token=x", headers=headers)
            assert answer.status_code < 500, (method, odd, answer.text)
