"""Which requests the server refuses because of their host, site, token or form. Answers have the security headers."""

from __future__ import annotations

import socket

import httpx2
import psycopg
import pytest
from support.queues import make_queue, one
from support.servers import embedded_only
from support.site import address, form_key, post, read, served

from pgcombine.web.guard import HEADERS

TOKEN = "a token of some length"
BEARER = {"Authorization": f"Bearer {TOKEN}"}

FOREIGN = "evil.example evil.example:8432 localhost.evil.example 127.0.0.1.evil.example 127.0.0.1@evil.example [::1"
HOSTS = dict.fromkeys(["localhost", "LOCALHOST:1", "127.0.0.1:8432", "[::1]:8432", "192.0.2.1"], 200)
HOSTS |= dict.fromkeys(FOREIGN.split(), 421)
# Sec-Fetch-Site, -Mode and -Dest, which a browser sends with each request → the expected status
FETCHES = {
    ("none", "navigate", "document"): 200,
    ("same-origin", "cors", "empty"): 200,
    ("cross-site", "navigate", "document"): 200,
    ("cross-site", "navigate", "iframe"): 403,
    ("cross-site", "no-cors", "image"): 403,
    ("same-site", "cors", "empty"): 403,
}


@embedded_only
def test_every_answer_has_the_security_headers(busy: None, dsn: str) -> None:
    with served(dsn, token=TOKEN) as client:
        answers = {
            "page": (client.get("/", headers=BEARER), 200),
            "error": (client.get("/nothing", headers=BEARER), 404),
            "file": (client.get("/static/page.css"), 200),
            "no file": (client.get("/static/nothing", headers=BEARER), 404),
            "hidden": (client.get("/static/nothing"), 303),
            "stranger": (client.get("/"), 303),
            "form": (client.get("/login"), 200),
            "health": (client.get("/healthz"), 200),
            "host": (client.get("/", headers={"Host": "evil.example"}), 421),
            "origin": (client.post("/login"), 403),
            "method": (client.request("DELETE", "/"), 405),
        }
    for name, (answer, status) in answers.items():
        assert answer.status_code == status, name
        assert {header: answer.headers.get(header) for header in HEADERS} == HEADERS, name
        assert answer.headers["cache-control"] == ("no-cache" if "/static/" in answer.url.path else "no-store")
        assert "server" not in answer.headers
    assert "unsafe" not in HEADERS["Content-Security-Policy"]


@embedded_only
def test_defect_is_answered_without_a_traceback(
    busy: None, dsn: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(connection: object) -> None:
        raise ZeroDivisionError("a secret")

    monkeypatch.setattr("pgcombine.web.figures.identity", broken)
    with served(dsn) as client:
        answer = client.get("/exports")
    assert answer.status_code == 500
    assert {name: answer.headers.get(name) for name in HEADERS} == HEADERS
    assert "Internal error of pgcombine web" in read(answer).text
    assert "secret" not in answer.text
    assert "a secret" in caplog.text


@embedded_only
def test_foreign_host_name_is_refused(dsn: str) -> None:
    with served(dsn) as client:
        for host, status in HOSTS.items():
            assert client.get("/healthz", headers={"Host": host}).status_code == status, host
        for lines in ("", "Host: localhost\r\nHost: evil.example\r\n"):
            with socket.create_connection((client.base_url.host, client.base_url.port or 0), timeout=30) as sock:
                sock.sendall(f"GET /healthz HTTP/1.1\r\n{lines}Connection: close\r\n\r\n".encode())
                answer = b"".join(iter(lambda sock=sock: sock.recv(4096), b""))
            assert answer.split(b" ", 2)[1] in (b"400", b"421")


@embedded_only
def test_given_host_name_is_answered(dsn: str) -> None:
    with served(dsn, token=TOKEN, hosts=["Queues.Example"]) as client:
        for host, status in {"queues.example": 200, "QUEUES.example:443": 200, "other.example": 421}.items():
            assert client.get("/healthz", headers={"Host": host}).status_code == status, host


@embedded_only
def test_other_sites_may_only_link(dsn: str) -> None:
    with served(dsn) as client:
        assert client.get("/healthz").status_code == 200, (
            "requests without Sec-Fetch headers come from old browsers and programs"
        )
        for (site, mode, dest), status in FETCHES.items():
            headers = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode, "Sec-Fetch-Dest": dest}
            assert client.get("/healthz", headers=headers).status_code == status, headers


@pytest.mark.wc
@embedded_only
def test_form_of_another_site_is_refused(conn: psycopg.Connection, dsn: str) -> None:
    with served(dsn, actions=True) as client:
        own = address(client)
        data = {"form_key": form_key(client, "/queues/wc")}
        refused: list[dict[str, str]] = [
            {},
            {"Origin": "null"},
            {"Origin": "https://evil.example"},
            {"Origin": own.replace("127.0.0.1", "localhost")},
            {"Origin": own[:-1]},
            {"Origin": own, "Sec-Fetch-Site": "cross-site"},
            {"Origin": own, "Sec-Fetch-Site": "same-site"},
            {"Sec-Fetch-Site": "none"},
            {"Origin": own, "Host": "evil.example"},
        ]
        for headers in refused:
            answer = client.post("/queues/wc/pause", data=data, headers=headers)
            assert answer.status_code in (403, 421), headers
        for wrong in ({}, {"form_key": ""}, {"form_key": data["form_key"] + "x"}, {"form_key": "\N{SNOWMAN}"}):
            headers = {"Origin": own, "Content-Type": "application/x-www-form-urlencoded"}
            answer = client.post("/queues/wc/pause", data=wrong, headers=headers)
            assert answer.status_code == 403
            assert "earlier run of pgcombine web" in read(answer).text
        assert one(conn, "select paused from pgcombine.queue") is False
        assert client.post("/queues/wc/pause", data=data, headers={"Origin": own}).status_code == 303
        assert one(conn, "select paused from pgcombine.queue") is True


@pytest.mark.wc
@embedded_only
def test_large_or_odd_forms_are_refused(conn: psycopg.Connection, dsn: str) -> None:
    with served(dsn, actions=True) as client:
        headers = {"Origin": address(client)}
        key = form_key(client, "/queues/wc")
        answers = [
            client.post("/queues/wc/pause", data={"form_key": key, "more": "x" * 5000}, headers=headers),
            client.post("/queues/wc/pause", json={"form_key": key}, headers=headers),
            client.post("/queues/wc/pause", files={"form_key": key.encode()}, headers=headers),
            client.post("/queues/wc/pause", data={str(n): "1" for n in range(20)}, headers=headers),
        ]
    assert [answer.status_code for answer in answers] == [413, 415, 415, 400]
    assert one(conn, "select paused from pgcombine.queue") is False


def signed_in(client: httpx2.Client) -> tuple[str, str]:
    """Sign in. Return the name and the value of the client's only cookie."""
    post(client, "/login", "", token=TOKEN)
    ((name, value),) = client.cookies.items()
    return name, value


@embedded_only
def test_pages_require_the_token(busy: None, conn: psycopg.Connection, dsn: str) -> None:
    with served(dsn, token=TOKEN, actions=True) as client:
        for path in ("/", "/queues/wc", "/doctor", "/nothing"):
            answer = client.get(path)
            assert (answer.status_code, answer.headers["location"]) == (303, f"/login?next={path}")
        assert post(client, "/queues/wc/pause", "x").status_code == 401
        for wrong in ("", "x", TOKEN + "x", "\N{SNOWMAN}"):
            headers = {b"Authorization": f"Bearer {wrong}".rstrip().encode()}
            assert client.get("/", headers=headers).status_code == 401
            refused = post(client, "/login", "", token=wrong)
            assert refused.status_code == 403
            assert "set-cookie" not in refused.headers
            assert "That isn't the token" in read(refused).text
        name = signed_in(client)[0]
        client.cookies.clear()
        for cookie in ("", "x", TOKEN.replace(" ", "")):
            assert client.get("/", headers={"Cookie": f"{name}={cookie}"}).status_code == 303
        assert client.get("/", headers=BEARER).status_code == 200
        database = str(psycopg.conninfo.conninfo_to_dict(dsn)["dbname"])
        assert database not in client.get("/login").text, (
            "the page for signing in must not show the name of the database"
        )
        program = BEARER | {"Origin": address(client)}
        assert client.post("/queues/wc/pause", data={"form_key": "x"}, headers=program).status_code == 401
    assert one(conn, "select paused from pgcombine.queue where queue = 'wc'") is False


@embedded_only
def test_session_lasts_from_sign_in_to_sign_out(busy: None, conn: psycopg.Connection, dsn: str) -> None:
    with served(dsn, token=TOKEN, actions=True) as client:
        answer = post(client, "/login", "", token=TOKEN, next="/queues/wc")
        assert (answer.status_code, answer.headers["location"]) == (303, "/queues/wc")
        kept = answer.headers["set-cookie"]
        assert "HttpOnly" in kept
        assert "SameSite=lax" in kept
        assert TOKEN not in kept
        assert "Secure" not in kept
        proxied = {"Origin": address(client).replace("http:", "https:")}
        behind = client.post("/login", data={"token": TOKEN}, headers=proxied)
        assert "Secure" in behind.headers["set-cookie"]
        cookie, session = signed_in(client)
        assert "wc ⚑" in read(client.get("/queues/wc")).text
        assert post(client, "/queues/wc/pause", form_key(client, "/queues/wc")).status_code == 303
        assert post(client, "/logout", "").headers["location"] == "/login"
        assert cookie not in client.cookies
        assert client.get("/").status_code == 303
        for wanted in ("//evil.example/", "https://evil.example/", "/\\evil.example", "evil", ""):
            assert post(client, "/login", "", token=TOKEN, next=wanted).headers["location"] == "/"
    with served(dsn, token=TOKEN) as client:
        cookie, _ = signed_in(client)
        client.cookies.clear()
        assert client.get("/", headers={"Cookie": f"{cookie}={session}"}).status_code == 303, (
            "a session ends with the process"
        )
    assert one(conn, "select paused from pgcombine.queue where queue = 'wc'") is True


@embedded_only
def test_cookies_of_other_programs_are_ignored(dsn: str) -> None:
    """Browsers send a host's cookies to all its ports, and some cookies can't be parsed."""
    with served(dsn, token=TOKEN) as client, served(dsn, token=TOKEN) as other:
        own, another = ("=".join(signed_in(page)) for page in (client, other))
        client.cookies.clear()
        for cookies in (f'x={{"a":1}}; {own}', f"{own}; {another}", f"{another}; {own}", f"=; y; {own}"):
            assert client.get("/exports", headers={"Cookie": cookies}).status_code == 200, cookies
        assert client.get("/exports", headers={"Cookie": another}).status_code == 303


@embedded_only
def test_host_must_have_the_port_of_the_proxy(dsn: str) -> None:
    headers = {"Origin": "https://queues.example:8443", "Sec-Fetch-Site": "same-origin"}
    with served(dsn, token=TOKEN, hosts=["queues.example"]) as client:
        for host, status in {"queues.example:8443": 303, "queues.example": 403}.items():
            answer = client.post("/login", data={"token": TOKEN}, headers=headers | {"Host": host})
            assert answer.status_code == status, host


@embedded_only
def test_page_without_a_token_has_no_sign_in(dsn: str) -> None:
    with served(dsn) as client:
        assert client.get("/login").headers["location"] == "/"
        assert post(client, "/login", "", token="").headers["location"] == "/"


@embedded_only
def test_compressed_answers_have_no_form_key(conn: psycopg.Connection, dsn: str) -> None:
    """If a compressed answer held the form key and a part of the request, its length would reveal the key."""
    for number in range(12):
        make_queue(conn, f"q{number}", buckets=1)
    with served(dsn, token=TOKEN, actions=True) as client:
        post(client, "/login", "", token=TOKEN)
        answer = client.get("/", params={"find": "q"})
    assert answer.headers["content-encoding"] == "gzip"
    assert "form_key" not in answer.text
