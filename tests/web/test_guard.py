"""Who is answered: hosts, other sites, tokens; and what every answer carries."""

from __future__ import annotations

import socket

import httpx
import psycopg
import pytest
from support.queues import make_queue, one
from support.servers import embedded_only
from support.site import address, form_key, post, read, served

from pgcombine.errors import ConfigError
from pgcombine.web.guard import COOKIE, HEADERS
from pgcombine.web.serve import listening, require_token

TOKEN = "a token of some length"

pytestmark = embedded_only


def test_every_answer_has_the_headers(busy: None, dsn: str) -> None:
    with served(dsn, token=TOKEN) as client:
        bearer = {"Authorization": f"Bearer {TOKEN}"}
        answers = [
            client.get("/", headers=bearer),
            client.get("/nothing", headers=bearer),
            client.get("/queues/wc", headers=bearer),
            client.get("/"),
            client.get("/login"),
            client.get("/static/page.css"),
            client.get("/static/nothing"),
            client.get("/healthz"),
            client.get("/", headers={"Host": "evil.example"}),
            client.post("/login"),
            client.request("DELETE", "/"),
        ]
    assert [answer.status_code for answer in answers] == [200, 404, 200, 303, 200, 200, 404, 200, 421, 403, 405]
    for answer in answers:
        assert {name: answer.headers.get(name) for name in HEADERS} == HEADERS
        assert answer.headers["cache-control"] == ("no-cache" if "/static/" in answer.url.path else "no-store")
        assert "server" not in answer.headers
    assert "unsafe" not in HEADERS["Content-Security-Policy"]


def test_a_defect_is_answered_with_the_headers_and_without_a_trace(
    busy: None, dsn: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(connection: object) -> None:
        raise ZeroDivisionError("a secret")

    monkeypatch.setattr("pgcombine.web.figures.identity", broken)
    with served(dsn) as client:
        answer = client.get("/exports")
    assert answer.status_code == 500
    assert {name: answer.headers.get(name) for name in HEADERS} == HEADERS
    assert "This is a defect of the page" in read(answer).text
    assert "secret" not in answer.text
    assert "a secret" in caplog.text


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("LOCALHOST:1", 200),
        ("127.0.0.1:8432", 200),
        ("[::1]:8432", 200),
        ("192.0.2.1", 200),
        ("evil.example", 421),
        ("evil.example:8432", 421),
        ("localhost.evil.example", 421),
        ("127.0.0.1.evil.example", 421),
        ("127.0.0.1@evil.example", 421),
        ("[::1", 421),
        ("", 421),
    ],
)
def test_hosts(dsn: str, host: str, status: int) -> None:
    """A foreign name that resolves to this machine reaches nothing."""
    with served(dsn) as client:
        assert client.get("/healthz", headers={"Host": host}).status_code == status


def test_two_hosts_or_none(dsn: str) -> None:
    with served(dsn) as client:
        for hosts in ("", "Host: localhost\r\nHost: evil.example\r\n"):
            with socket.create_connection((client.base_url.host, client.base_url.port or 0), timeout=30) as sock:
                sock.sendall(f"GET /healthz HTTP/1.1\r\n{hosts}Connection: close\r\n\r\n".encode())
                answer = b"".join(iter(lambda sock=sock: sock.recv(4096), b""))
            assert answer.split(b" ", 2)[1] in (b"400", b"421")


def test_a_given_name_is_answered(dsn: str) -> None:
    with served(dsn, token=TOKEN, hosts=["Queues.Example"]) as client:
        for host in ("queues.example", "QUEUES.example:443"):
            assert client.get("/healthz", headers={"Host": host}).status_code == 200
        assert client.get("/healthz", headers={"Host": "other.example"}).status_code == 421


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}, 200),
        ({"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty"}, 200),
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}, 200),
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"}, 403),
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}, 403),
        ({"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty"}, 403),
    ],
)
def test_other_sites_may_only_link(dsn: str, headers: dict[str, str], status: int) -> None:
    with served(dsn) as client:
        assert client.get("/healthz", headers=headers).status_code == status


def test_a_form_of_another_site_is_refused(conn: psycopg.Connection, dsn: str) -> None:
    make_queue(conn)
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
        assert one(conn, "select paused from pgcombine.queue") is False
        for wrong in ({}, {"form_key": ""}, {"form_key": data["form_key"] + "x"}, {"form_key": "é"}):
            answer = client.post("/queues/wc/pause", data=wrong, headers={"Origin": own})
            assert answer.status_code == 403
        assert "earlier run of the page" in read(answer).text
        assert one(conn, "select paused from pgcombine.queue") is False
        assert client.post("/queues/wc/pause", data=data, headers={"Origin": own}).status_code == 303
        assert one(conn, "select paused from pgcombine.queue") is True


def test_forms_are_small_and_forms(conn: psycopg.Connection, dsn: str) -> None:
    make_queue(conn)
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


def test_without_the_token_nothing_is_shown(busy: None, conn: psycopg.Connection, dsn: str) -> None:
    with served(dsn, token=TOKEN, actions=True) as client:
        for path in ("/", "/queues/wc", "/doctor", "/nothing"):
            answer = client.get(path)
            assert (answer.status_code, answer.headers["location"]) == (303, f"/login?next={path}")
        assert post(client, "/queues/wc/pause", "x").status_code == 401
        for wrong in ("", "x", TOKEN + "x", "é"):
            headers = {"Authorization": f"Bearer {wrong}".encode()}
            assert client.get("/", headers=headers).status_code == 401
            refused = post(client, "/login", "", token=wrong)
            assert refused.status_code == 403
            assert "set-cookie" not in refused.headers
            assert "That isn't the token" in read(refused).text
        assert client.get("/", headers={"Cookie": f"{COOKIE}=x"}).status_code == 303
        assert client.get("/", headers={"Cookie": f"{COOKIE}={TOKEN}"}).status_code == 303
        name = str(psycopg.conninfo.conninfo_to_dict(dsn)["dbname"])
        assert client.get("/", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200
        assert name not in client.get("/login").text, "the names are known by now"
        assert client.get("/static/page.css").status_code == 200
    assert one(conn, "select paused from pgcombine.queue where queue = 'wc'") is False


def test_signing_in_and_out(busy: None, conn: psycopg.Connection, dsn: str) -> None:
    with served(dsn, token=TOKEN, actions=True) as client:
        answer = post(client, "/login", "", token=TOKEN, next="/queues/wc")
        assert (answer.status_code, answer.headers["location"]) == (303, "/queues/wc")
        cookie = answer.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=lax" in cookie
        assert TOKEN not in cookie
        assert "wc ⚑" in read(client.get("/queues/wc")).text
        assert post(client, "/queues/wc/pause", form_key(client, "/queues/wc")).status_code == 303
        session = client.cookies[COOKIE]
        assert post(client, "/logout", "").headers["location"] == "/login"
        assert COOKIE not in client.cookies
        assert client.get("/").status_code == 303
    with served(dsn, token=TOKEN) as client:
        assert client.get("/", headers={"Cookie": f"{COOKIE}={session}"}).status_code == 303, "it ends with the process"
    assert one(conn, "select paused from pgcombine.queue where queue = 'wc'") is True


def test_a_program_reads_and_does_nothing(busy: None, dsn: str) -> None:
    with served(dsn, token=TOKEN, actions=True) as client:
        headers = {"Authorization": f"bearer {TOKEN}", "Origin": address(client)}
        assert client.get("/", headers=headers).status_code == 200
        assert client.post("/queues/wc/pause", data={"form_key": "x"}, headers=headers).status_code == 401


@pytest.mark.parametrize("wanted", ["//evil.example/", "https://evil.example/", "/\\evil.example", "evil", ""])
def test_signing_in_leads_nowhere_else(dsn: str, wanted: str) -> None:
    with served(dsn, token=TOKEN) as client:
        assert post(client, "/login", "", token=TOKEN, next=wanted).headers["location"] == "/"


def test_without_a_token_nobody_signs_in(dsn: str) -> None:
    with served(dsn) as client:
        assert client.get("/login").headers["location"] == "/"
        assert post(client, "/login", "", token="").headers["location"] == "/"


@pytest.mark.parametrize(
    ("host", "hosts", "token", "message"),
    [
        ("127.0.0.1", [], None, None),
        ("127.9.9.9", [], None, None),
        ("::1", [], None, None),
        ("localhost", [], None, None),
        ("0.0.0.0", [], TOKEN, None),
        ("0.0.0.0", [], None, "can be read from elsewhere"),
        ("::", [], None, "can be read from elsewhere"),
        ("192.0.2.1", [], None, "on 192.0.2.1 can be read from elsewhere"),
        ("host.example", [], None, "can be read from elsewhere"),
        ("", [], None, "can be read from elsewhere"),
        ("127.0.0.1", ["queues.example"], None, "under the name queues.example can be read from elsewhere"),
        ("127.0.0.1", ["queues.example"], TOKEN, None),
        ("127.0.0.1", [], "short", "has 5 characters, and needs 16"),
    ],
)
def test_when_a_token_is_needed(host: str, hosts: list[str], token: str | None, message: str | None) -> None:
    if message is None:
        require_token(host, hosts, token)
    else:
        with pytest.raises(ConfigError, match=message):
            require_token(host, hosts, token)


def test_where_it_can_not_listen() -> None:
    with listening("127.0.0.1", 0) as sock:
        port = sock.getsockname()[1]
        with pytest.raises(ConfigError, match=f"port {port} of 127.0.0.1 .*--port"):
            listening("127.0.0.1", port)
    with pytest.raises(ConfigError, match=r"the host nowhere\.invalid isn't known"):
        listening("nowhere.invalid", 0)


def test_answers_are_compressed_but_not_those_with_a_form(conn: psycopg.Connection, dsn: str) -> None:
    for number in range(12):
        make_queue(conn, f"q{number}", buckets=1)
    with served(dsn, token=TOKEN) as client:
        post(client, "/login", "", token=TOKEN)
        answer: httpx.Response = client.get("/", params={"find": "q"})
    assert answer.headers["content-encoding"] == "gzip"
    assert "form_key" not in answer.text
