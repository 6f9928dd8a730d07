"""Forms of the pages pause and resume queues and exports, and retry and drop keys, but only if actions are allowed."""

from __future__ import annotations

import logging

import psycopg
import pytest
from support.queues import combine_all, make_queue, one, values
from support.servers import embedded_only
from support.site import HOSTILE, form_key, post, read, served


def number_of(conn: psycopg.Connection, word: str) -> str:
    return str(one(conn, "select id from pgcombine.quarantine where key ->> 'word' = %s", word))


def paused(conn: psycopg.Connection, queue: str = "wc") -> bool:
    return bool(one(conn, "select paused from pgcombine.queue where queue = %s", queue))


def test_form_pauses_and_resumes_a_queue(
    busy: None, conn: psycopg.Connection, dsn: str, caplog: pytest.LogCaptureFixture, impatient: None
) -> None:
    with served(dsn, actions=True) as client, caplog.at_level(logging.INFO):
        key = form_key(client, "/queues/wc")
        answer = post(client, "/queues/wc/pause", key)
        assert (answer.status_code, answer.headers["location"]) == (303, "/queues/wc?done=paused")
        assert paused(conn)
        page = read(client.get(answer.headers["location"]))
        assert "✓ Paused until it is resumed." in page.text
        assert "/queues/wc/resume" in [form["action"] for form in page.all("form")]
        assert post(client, "/queues/wc/resume", key).headers["location"] == "/queues/wc?done=resumed"
        assert not paused(conn)
        assert "/queues/wc/pause" in [form["action"] for form in read(client.get("/queues/wc")).all("form")]
        assert post(client, "/queues/nothing/pause", key).status_code == 404
    assert "web.action what=pause subject=wc key=- outcome=paused" in caplog.text


@embedded_only
def test_form_of_the_overview_lets_workers_try_again_now(
    busy: None, conn: psycopg.Connection, dsn: str, impatient: None
) -> None:
    conn.execute(
        "insert into pgcombine.failure (queue, bucket, attempts, sqlstate, error, retry_at)"
        " values ('fit', 0, 9, '22012', 'zero', now() + interval '1 h')"
    )
    with served(dsn, actions=True) as client:
        page = client.get("/")
        assert [form["action"] for form in read(page).all("form")] == [
            "/queues/fit/resume",
            "/queues/wc/quarantine/retry",
            "/queues/resting/resume",
        ]
        assert page.text.count('name="back" value="overview"') == 3
        key = form_key(client, "/")
        answer = post(client, "/queues/fit/resume", key, back="overview")
        assert (answer.status_code, answer.headers["location"]) == (303, "/?done=resumed")
        assert "✓ Resumed. Workers try at once." in read(client.get("/?done=resumed")).text
        elsewhere = post(client, "/queues/fit/resume", key, back="https://example.org/")
        assert elsewhere.headers["location"] == "/queues/fit?done=resumed"
        retried = post(client, "/queues/wc/quarantine/retry", key, all="yes", back="overview")
        assert retried.headers["location"] == "/?done=retried&count=1"
    assert one(conn, "select retry_at <= now() from pgcombine.failure where queue = 'fit'")


def test_form_retries_a_key(busy: None, conn: psycopg.Connection, dsn: str, impatient: None) -> None:
    number = number_of(conn, "bad")
    with served(dsn, actions=True) as client:
        key = form_key(client, f"/queues/wc/quarantine/{number}")
        answer = post(client, "/queues/wc/quarantine/retry", key, id=number)
        assert answer.headers["location"] == "/queues/wc?done=retried&count=1"
        assert "✓ Pending again: 1 update." in read(client.get(answer.headers["location"])).text
        again = post(client, "/queues/wc/quarantine/retry", key, id=number)
        assert again.status_code == 404
        assert "the key isn't quarantined any more" in read(again).text
    combine_all(conn)
    assert values(conn) == {"fluo": 4, "spark": 1, "bad": 1}


@pytest.mark.parametrize("verb", ["retry", "drop"])
def test_form_acts_on_exactly_the_hostile_key(
    hostile: None, conn: psycopg.Connection, dsn: str, verb: str, impatient: None
) -> None:
    before = values(conn)
    with served(dsn, actions=True) as client:
        key = form_key(client, "/queues/wc")
        for word in HOSTILE[:-1]:
            answer = post(client, f"/queues/wc/quarantine/{verb}", key, id=number_of(conn, word))
            assert answer.headers["location"].endswith("&count=1"), word
    assert one(conn, "select array_agg(key ->> 'word') from pgcombine.quarantine") == HOSTILE[-1:]
    combine_all(conn)
    added = {word: number for number, word in enumerate(HOSTILE[:-1])} if verb == "retry" else {}
    assert values(conn) == {word: n + added.get(word, 0) for word, n in before.items()}


def test_form_drops_all_keys_of_a_queue(hostile: None, conn: psycopg.Connection, dsn: str, impatient: None) -> None:
    with served(dsn, actions=True) as client:
        key = form_key(client, "/queues/wc")
        assert post(client, "/queues/wc/quarantine/drop", key).status_code == 400
        assert post(client, "/queues/wc/quarantine/drop", key, id="all").status_code == 400
        assert one(conn, "select count(*) from pgcombine.quarantine") == len(HOSTILE)
        answer = post(client, "/queues/wc/quarantine/drop", key, all="yes")
        assert answer.headers["location"] == f"/queues/wc?done=dropped&count={len(HOSTILE)}"
        assert f"Deleted: {len(HOSTILE)} updates." in read(client.get(answer.headers["location"])).text
    assert one(conn, "select count(*) from pgcombine.quarantine") == 0


def test_numbers_in_keys_keep_their_digits(conn: psycopg.Connection, dsn: str) -> None:
    make_queue(conn, "exact", key=["k numeric"], buckets=1)
    number = "1234567890123456789012345678901234567890.10"
    conn.execute("insert into pgcombine.exact_updates (k, n) values (%s::numeric, 7)", (number,))
    conn.execute(
        "insert into pgcombine.quarantined_key (queue, key, updates, attempts, error)"
        " values ('exact', jsonb_build_object('k', %s::numeric), 0, 1, 'by hand')",
        (number,),
    )
    held = one(conn, "select id from pgcombine.quarantined_key")
    conn.execute("insert into pgcombine.exact_quarantine_keys select %s::numeric, %s", (number, held))
    combine_all(conn, "exact")
    with served(dsn, actions=True) as client:
        page = client.get(f"/queues/exact/quarantine/{held}")
        assert f"A quarantined key k {number} error" in read(page).text
        assert f"Updates k n {number} 7" in read(page).text
        key = form_key(client, "/queues/exact")
        answer = post(client, "/queues/exact/quarantine/retry", key, id=str(held))
        assert answer.headers["location"] == "/queues/exact?done=retried&count=1"
    combine_all(conn, "exact")
    assert one(conn, "select k::text from pgcombine.exact_values") == number


def test_form_pauses_and_resumes_an_export(busy: None, conn: psycopg.Connection, dsn: str) -> None:
    state = "select state || coalesce(': ' || reason, '') from pgcombine.destination where name = 'search'"
    with served(dsn, actions=True) as client:
        key = form_key(client, "/exports")
        assert post(client, "/exports/search/pause", key).headers["location"] == "/exports?done=paused"
        assert one(conn, state) == "paused: paused on the page"
        assert "/exports/search/resume" in [form["action"] for form in read(client.get("/exports")).all("form")]
        assert post(client, "/exports/search/resume", key).headers["location"] == "/exports?done=resumed"
        assert str(one(conn, state)).startswith("up")
        assert post(client, "/exports/nothing/pause", key).status_code == 404


@embedded_only
def test_actions_are_refused_unless_allowed(busy: None, conn: psycopg.Connection, dsn: str) -> None:
    number = number_of(conn, "bad")
    with served(dsn) as client:
        for path in ("/queues/wc", f"/queues/wc/quarantine/{number}", "/exports"):
            assert read(client.get(path)).all("form") == []
        key = form_key(client, "/doctor")
        for path in (
            *("/queues/wc/pause", "/queues/wc/resume", "/queues/wc/quarantine/retry", "/queues/wc/quarantine/drop"),
            *("/exports/search/pause", "/exports/search/resume"),
        ):
            refused = post(client, path, key, id=number, all="yes")
            assert refused.status_code == 403
            assert "Start pgcombine web with --allow-actions" in read(refused).text
            assert client.get(path).status_code == 405
    assert not paused(conn)
    assert one(conn, "select count(*) from pgcombine.quarantine") == 1
    assert one(conn, "select state from pgcombine.destination where name = 'search'") == "up"


@embedded_only
def test_page_repeats_no_text_of_the_address(busy: None, dsn: str) -> None:
    with served(dsn, actions=True) as client:
        for count in ("<b>", "9" * 30, "\u0663"):
            page = read(client.get("/queues/wc", params={"done": "dropped", "count": count}))
            assert "Deleted: the updates." in page.text
            assert "<b>" not in page.text
            assert "999" not in page.text
            assert "\u0663" not in page.text


@embedded_only
def test_page_reports_a_lock(busy: None, conn: psycopg.Connection, dsn: str) -> None:
    """Another session locks the row of the queue: the page reports the lock instead of waiting."""
    with psycopg.connect(dsn) as blocker, served(dsn, actions=True) as client:
        blocker.execute("select from pgcombine.queue where queue = 'wc' for no key update")
        refused = post(client, "/queues/wc/pause", form_key(client, "/queues/wc"))
        assert refused.status_code == 503
        assert "Another session has locked a table" in read(refused).text
    assert not paused(conn)
