"""Requests of the exporter ``webhook``, read by the libraries ``standardwebhooks`` and ``cloudevents``."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest
from cloudevents.core.formats.json import JSONFormat
from standardwebhooks import Webhook, WebhookVerificationError
from support import run_cli
from support.exports import impatient, make_export, quarantined
from support.queues import add, combine, combine_all, one
from support.receiver import Answer, Receiver
from support.roles import Roles, as_role
from support.servers import embedded_only
from support.states import raises_state

from pgcombine import Entry, ExportWorker
from pgcombine.errors import ConfigError, DestinationDownError
from pgcombine.export import signing
from pgcombine.export.webhook import WebhookExporter

FIRST, SECOND, THIRD = (f"whsec_{base64.b64encode(bytes([number]) * 32).decode()}" for number in (1, 2, 3))
ENTRY = Entry("a", None, 1, 1, '{"word": "a", "seq": 1}')


def verified(secret: str) -> Answer:
    """Make an answer that is 200 if the secret verifies the request, else 401."""

    def answer(body: bytes, headers: dict[str, str]) -> int:
        try:
            Webhook(secret).verify(body, headers)
        except WebhookVerificationError:
            return 401
        return 200

    return answer


def send(receiver: Receiver, secrets: signing.Secrets | None, *, export: str = "search", entry: Entry = ENTRY) -> None:
    exporter = WebhookExporter(receiver.url, export, secrets=secrets)
    try:
        exporter.deliver([entry])
    finally:
        exporter.close()


def make_webhook(conn: psycopg.Connection, receiver: Receiver, **options: object) -> None:
    make_export(conn, exporter="webhook", target=receiver.url, **options)
    impatient(conn)


# -- signatures --------------------------------------------------------------------------------------------------------


def test_requests_without_a_secret_have_an_id_and_a_time(receiver: Receiver) -> None:
    send(receiver, None)
    ((headers, _),) = receiver.asked
    assert headers["webhook-id"] == headers["idempotency-key"]
    assert headers["webhook-timestamp"].isdigit()
    assert "webhook-signature" not in headers


@pytest.mark.parametrize("secret", [FIRST, SECOND])
def test_receiver_verifies_either_secret_of_a_rotation(receiver: Receiver, secret: str) -> None:
    receiver.answer = verified(secret)
    send(receiver, f"{SECOND} {FIRST}\n")
    receiver.answer = verified(THIRD)
    with pytest.raises(DestinationDownError):
        send(receiver, f"{SECOND} {FIRST}")


def test_signature_covers_the_id_the_time_and_the_body(receiver: Receiver) -> None:
    send(receiver, FIRST)
    ((headers, body),) = receiver.asked
    Webhook(FIRST).verify(body, headers)
    later = str(int(headers["webhook-timestamp"]) + 1)
    for changed in ({"webhook-id": "search-1"}, {"webhook-timestamp": later}):
        with pytest.raises(WebhookVerificationError):
            Webhook(FIRST).verify(body, headers | changed)
    with pytest.raises(WebhookVerificationError):
        Webhook(FIRST).verify(body + b" ", headers)
    for seconds, fault in ((-600, "too old"), (600, "too new")):
        at = float(headers["webhook-timestamp"]) + seconds
        wrong = signing.headers(headers["webhook-id"], body, signing.keys(FIRST), at)
        with pytest.raises(WebhookVerificationError, match=fault):
            Webhook(FIRST).verify(body, wrong)


def test_huge_bodies_are_signed(receiver: Receiver) -> None:
    receiver.answer = verified(FIRST)
    send(receiver, FIRST, entry=ENTRY._replace(json=f'{{"word": "{"é" * 10_000_000}"}}'))


@pytest.mark.parametrize("name", ["a\r\nX-Injected: 1", "a\nX-Injected: 1"])
def test_name_adds_no_header(receiver: Receiver, name: str) -> None:
    """If a program passes a name with a line break to the exporter, no request is sent.

    ``create_export`` refuses such a name.
    """
    with pytest.raises(DestinationDownError):
        send(receiver, FIRST, export=name)
    assert receiver.asked == []


@pytest.mark.parametrize(
    "secrets",
    [
        "t0psecret",
        FIRST.removeprefix("whsec_"),
        f"{FIRST} whsec_t0psecret",
        f"{FIRST} whsec_{'t0psecr!' * 8}",
        f"whsec_t0psecrét{'A' * 40}",
        f"whsec_{base64.b64encode(b'x' * 65).decode()}",
        " \n",
    ],
)
def test_malformed_secrets_are_refused_unseen(secrets: str) -> None:
    with pytest.raises(ConfigError) as caught:
        ExportWorker("", "search", secrets=secrets)
    assert "t0psecr" not in str(caught.value)


def test_secrets_may_lack_padding(receiver: Receiver) -> None:
    receiver.answer = verified(FIRST)
    send(receiver, FIRST.rstrip("="))


@pytest.mark.wc(buckets=1)
@embedded_only
def test_rotated_file_is_read_at_the_next_delivery(
    conn: psycopg.Connection, dsn: str, receiver: Receiver, tmp_path: Path
) -> None:
    """The file is read for each batch. While it is empty or missing, entries wait and no request is sent."""
    make_webhook(conn, receiver)
    file = tmp_path / "secrets"
    file.write_text(FIRST)
    worker = ExportWorker(dsn, "search", secrets=file.read_text)
    for secret, word in ((FIRST, "a"), (SECOND, "b")):
        file.write_text(secret)
        receiver.answer = verified(secret)
        combine(conn, {word: 1})
        worker.drain()
    sent = len(receiver.asked)
    combine(conn, {"c": 1})
    file.write_text("")
    with pytest.raises(DestinationDownError):
        worker.drain()
    file.unlink()
    conn.execute("select pgcombine.resume_export('search')")
    with pytest.raises(DestinationDownError):
        worker.drain()
    assert len(receiver.asked) == sent
    file.write_text(f"{THIRD}\n{SECOND}\n")
    conn.execute("select pgcombine.resume_export('search')")
    worker.drain()
    assert worker.delivered == 3


@pytest.mark.wc(buckets=1)
@embedded_only
def test_retry_has_the_id_of_its_batch(conn: psycopg.Connection, dsn: str, receiver: Receiver) -> None:
    """If a receiver refuses the signature, no entry is quarantined. The retry has the same id and the same body."""
    make_webhook(conn, receiver, format="cloudevents")
    combine(conn, {"a": 1, "b": 2})
    receiver.answer = verified(SECOND)
    with pytest.raises(DestinationDownError):
        ExportWorker(dsn, "search", secrets=FIRST).drain()
    conn.execute("select pgcombine.resume_export('search')")
    ExportWorker(dsn, "search", secrets=SECOND).drain()
    combine(conn, {"a": 1})
    ExportWorker(dsn, "search", secrets=SECOND).drain()
    ids = [headers["webhook-id"] for headers, _ in receiver.asked]
    assert ids[0] == ids[1] != ids[2]
    assert receiver.asked[0][1] == receiver.asked[1][1]
    assert quarantined(conn) == 0


@pytest.mark.wc(buckets=1)
@embedded_only
def test_command_takes_secrets(conn: psycopg.Connection, dsn: str, receiver: Receiver, tmp_path: Path) -> None:
    make_webhook(conn, receiver)
    file = tmp_path / "secrets"
    run = ("export", "run", "search", "--drain", "--dsn", dsn)
    receiver.answer = verified(FIRST)
    for word, options, variables in [
        ("a", [], {"PGCOMBINE_WEBHOOK_SECRETS": FIRST}),
        ("b", ["--secret-file", str(file)], {"PGCOMBINE_WEBHOOK_SECRETS": SECOND}),
    ]:
        file.write_text(f"{FIRST}\n")
        combine(conn, {word: 1})
        found = run_cli(*run, *options, env=variables)
        assert found.returncode == 0, found.stderr
    file.write_bytes(b"whsec_t0psecret\xff")
    for options, fault in [(str(file), "secret 1 must be"), (str(tmp_path / "none"), "No such file")]:
        found = run_cli(*run, "--secret-file", options)
        assert (found.returncode, fault in found.stderr, "t0psecret" in found.stderr) == (1, True, False)


# -- CloudEvents -------------------------------------------------------------------------------------------------------


def events(receiver: Receiver) -> list[Any]:
    """The events of all requests. The library raises an error for an event that isn't valid."""
    assert {headers["content-type"] for headers, _ in receiver.asked} == {"application/cloudevents-batch+json"}
    return [
        JSONFormat().read(None, json.dumps(event)) for _, body in receiver.asked for event in json.loads(body.decode())
    ]


@pytest.mark.wc(buckets=1)
@embedded_only
def test_receiver_reads_cloudevents(conn: psycopg.Connection, dsn: str, receiver: Receiver) -> None:
    make_webhook(conn, receiver, format="cloudevents")
    for numbers in ({"b": 2, "ä": 3}, {"b": 1}):
        before = one(conn, "select clock_timestamp()")
        combine(conn, numbers)
        ExportWorker(dsn, "search").drain()
    found = events(receiver)
    assert [(event.get_subject(), event.get_data()) for event in found] == [
        ("b", {"key": {"word": "b"}, "old": None, "new": {"n": 2}}),
        ("ä", {"key": {"word": "ä"}, "old": None, "new": {"n": 3}}),
        ("b", {"key": {"word": "b"}, "old": {"n": 2}, "new": {"n": 3}}),
    ]
    seqs = [int(event.get_extension("sequence")) for event in found]
    assert [event.get_id() for event in found] == [f"search-{seq}" for seq in seqs]
    assert len({event.get_extension("sequence") for event in found}) == 3
    server = one(conn, "select system_identifier || '/' || current_database() from pg_control_system()")
    assert {event.get_source() for event in found} == {f"/pgcombine/{server}/wc"}
    assert {(event.get_type(), event.get_datacontenttype()) for event in found} == {
        ("pgcombine.change", "application/json")
    }
    at = found[-1].get_time()
    assert at is not None
    assert before <= at <= one(conn, "select clock_timestamp()")


@pytest.mark.wc(buckets=1)
@embedded_only
def test_roles_with_one_right_make_and_deliver_events(conn: psycopg.Connection, dsn: str, receiver: Receiver) -> None:
    make_webhook(conn, receiver, format="cloudevents")
    add(conn, {"a": 1})
    with Roles(conn, dsn) as roles:
        worker, deliverer = roles.login(), roles.login()
        conn.execute("select pgcombine.grant_right('work', %s)", (worker.info.user,))
        conn.execute("select pgcombine.grant_right('work', %s)", (deliverer.info.user,))
        combine_all(worker)
        assert ExportWorker(as_role(dsn, deliverer.info.user), "search").drain() == 1
    assert [event.get_subject() for event in events(receiver)] == ["a"]


@pytest.mark.wc(buckets=1)
@embedded_only
def test_refused_events_keep_their_identity(conn: psycopg.Connection, dsn: str, receiver: Receiver) -> None:
    """An entry that was quarantined and is retried is the same event, with the same time."""
    make_webhook(conn, receiver, format="cloudevents")
    combine(conn, {"a": 1})
    receiver.answer = lambda body, headers: 422
    ExportWorker(dsn, "search").drain()
    assert quarantined(conn) == 1
    receiver.answer = lambda body, headers: 200
    assert one(conn, "select pgcombine_internal.export_release('search', null, true)") == 1
    ExportWorker(dsn, "search").drain()
    assert receiver.asked[-1][1] == receiver.asked[0][1]


@embedded_only
def test_events_keep_all_keys_and_digits(conn: psycopg.Connection, dsn: str, receiver: Receiver) -> None:
    """Events keep keys and numbers unchanged.

    Some key columns have names like columns of an entry, some keys can't be an event's subject, and some numbers have
    more digits than Python's parser accepts.
    """
    make = "select pgcombine.create_queue(%s, key => %s, value => array['v numeric sum'])"
    conn.execute(make, ("odd", ["old_k text", "new_k text"]))
    conn.execute(make, ("wc", ["word text"]))
    number = "9" * 5000
    words = ["", "\x7f", '"\\', "\r\nce-id: 1", "𝄞"]
    for word in words:
        conn.execute("insert into pgcombine.wc_updates (word, v) values (%s, %s::numeric)", (word, number))
    conn.execute("insert into pgcombine.odd_updates values ('a', '', 1.50)")
    for export in ("search", "other"):
        queue = {"search": "wc", "other": "odd"}[export]
        make_export(conn, export=export, queue=queue, exporter="webhook", target=receiver.url, format="cloudevents")
    for queue in ("wc", "odd"):
        conn.execute("call pgcombine.drain(%s)", (queue,))
    for export in ("search", "other"):
        ExportWorker(dsn, export).drain()
    text = b"".join(body for _, body in receiver.asked).decode()
    assert text.count(number) == len(words)
    assert '"new": {"v": 1.50}' in text
    decoder = json.JSONDecoder(parse_int=str)
    found = {
        json.dumps(list(event["data"]["key"].values())): event.get("subject")
        for _, body in receiver.asked
        for event in decoder.decode(body.decode())
    }
    keys = {json.dumps([word]): word if word in ('"\\', "𝄞") else None for word in words}
    assert found == keys | {'["a", ""]': '["a", ""]'}


@pytest.mark.wc(buckets=1)
@embedded_only
def test_other_exporters_have_no_events(conn: psycopg.Connection) -> None:
    for options in (
        {"exporter": "files", "target": "/tmp", "format": "cloudevents"},
        {"exporter": "webhook", "target": "http://host/", "format": "avro"},
    ):
        with raises_state("PC003"):
            make_export(conn, **options)  # type: ignore[arg-type]


# -- answers that ask to wait ------------------------------------------------------------------------------------------


@pytest.mark.wc(buckets=1)
def test_destination_is_left_alone_as_long_as_it_asks(conn: psycopg.Connection, dsn: str, receiver: Receiver) -> None:
    """An invalid header Retry-After, and one in the past, count for nothing, and the longest wait is an hour."""
    make_webhook(conn, receiver)
    combine(conn, {"a": 1})
    long, soon, late = (
        format_datetime(datetime.now(UTC) + timedelta(seconds=seconds), usegmt=True)
        for seconds in (600, -(10**8), 10**8)
    )
    for status, asked, least, most in [
        *((503, "600", 590, 600), (429, long, 500, 601), (429, "9" * 40, 3590, 3600), (503, late, 3590, 3600)),
        *((429, nothing, 0, 1) for nothing in ("0", "-600", "6e2", "soon", "Sun, 99 Nov 9999 99:99:99 GMT", "", soon)),
    ]:
        receiver.headers, receiver.answer = {"Retry-After": asked}, lambda body, headers, status=status: status
        with pytest.raises(DestinationDownError, match=f"HTTP {status}"):
            ExportWorker(dsn, "search").drain()
        waits = one(conn, "select extract(epoch from retry_at - clock_timestamp()) from pgcombine.destination")
        assert least - 1 <= waits <= most, (status, asked)
        conn.execute("select pgcombine.resume_export('search')")
    receiver.answer = lambda body, headers: 200
    assert ExportWorker(dsn, "search").drain() == 1
