"""The pages of a real database, and their errors."""

from __future__ import annotations

import itertools
import re
import time
from datetime import UTC
from typing import Any

import psycopg
import pytest
from psycopg import sql
from support import eventually
from support.queues import add, combine_all, hold, make_queue, one
from support.roles import Roles, as_role
from support.servers import Server, embedded_only
from support.sessions import workers
from support.site import HOSTILE, form_key, post, read, served

from pgcombine.doctor.examine import examine
from pgcombine.doctor.findings import Finding, Level, Limits
from pgcombine.web import checkup, pages
from pgcombine.web.database import Database
from pgcombine.web.history import History
from pgcombine.web.lines import Lines
from pgcombine.web.texts import shown

OF_THE_DATABASE = ["/", "/queues/wc", "/queues/wc/keys", "/exports", "/servers", "/loads"]
PAGES = [*OF_THE_DATABASE, "/doctor"]


def test_overview_lists_queues_in_trouble_first(busy: None, dsn: str) -> None:
    with served(dsn) as client:
        page = read(client.get("/"))
    assert re.findall(r"wc ⚑ quarantined|resting ‖ paused|fit ✓ well", page.text) == [
        "wc ⚑ quarantined",
        "resting ‖ paused",
        "fit ✓ well",
    ]
    assert "✖ wc has quarantined keys" in page.text
    assert "Besides: resting is paused, and updates wait. No worker is connected." in page.text
    assert "⚑ bigint out of range 22003 1 key quarantined: no value contains their updates." in page.text
    assert "▲ none no worker is connected" in page.text
    assert len(page.all("svg")) == 6


def banners(text: str) -> list[tuple[str, str]]:
    """The sign and the texts in ``<code>`` of each banner on a page, in the page's order."""
    found = re.findall(r'<p class="warning(?: wrong)?">(.)(.*?)</p>', text, re.DOTALL)
    return [(sign, " ".join(re.findall(r"<code>(.+?)</code>", rest))) for sign, rest in found]


@embedded_only
def test_banners_show_the_doctors_commands(busy: None, conn: psycopg.Connection, dsn: str, impatient: None) -> None:
    """The doctor also advises each command that a banner names."""
    add(conn, {"late": 1})
    conn.execute(
        "insert into pgcombine.failure (queue, bucket, attempts, sqlstate, error) values ('wc', 2, 3, '22012', 'zero')"
    )
    conn.execute(
        "update pgcombine.destination_state set state = 'down', failures = 9, retry_at = now() + interval '1 h'"
        " where name = 'search'"
    )
    with psycopg.connect(dsn) as holder, pytest.MonkeyPatch.context() as patch:
        holder.execute("set transaction isolation level repeatable read")
        holder.execute("select 1")
        time.sleep(1.1)  # statements of the pages' own sessions are younger
        patch.setattr(pages, "OLD_SNAPSHOT", 1.0)
        advice = "; ".join(one.advice for one in examine(dsn, limits=Limits(snapshot=1.0)))
        with served(dsn) as client:
            found = {path: banners(client.get(path).text) for path in ("/", "/queues/wc", "/queues/resting")}
        pid = holder.info.backend_pid
    of_wc = [("✖", "22012 pgcombine queue resume wc"), ("⚑", "22003 pgcombine quarantine ls wc")]
    of_resting = [("‖", "pgcombine queue resume resting")]
    assert found["/"] == [
        *of_wc,
        ("▲", "pgcombine worker"),
        ("✖", "pgcombine export resume search"),
        ("▲", f"select pg_terminate_backend({pid})"),
        *of_resting,
    ]
    assert found["/queues/wc"] == [("▲", "pgcombine worker"), *of_wc]
    assert found["/queues/resting"] == of_resting
    for _, command in itertools.chain(*found.values()):
        assert re.sub("^22[0-9]{3} ", "", command) in advice, advice


def test_search_finds_a_queue_by_a_part_of_its_name(busy: None, dsn: str) -> None:
    with served(dsn) as client:
        found = read(client.get("/", params={"find": "FI"}))
        none = read(client.get("/", params={"find": "<b>"}))
    links = [link["href"] for link in found.all("a") if link["href"].startswith("/queues/")]
    # the summary links the queue with the greatest lag
    assert links == ["/queues/resting", "/queues/fit"]
    assert "No queue has <b> in its name" in none.text


def test_page_shows_a_queue(busy: None, conn: psycopg.Connection, dsn: str) -> None:
    with served(dsn) as client:
        page = read(client.get("/queues/wc"))
    assert "wc ⚑ quarantined" in page.text
    assert "1 quarantined key, with 1 update" in page.text
    assert "key updates attempts since error bad 1 5" in page.text
    assert "bigint out of range 22003" in page.text
    ended = one(conn, "select max(ended) from pgcombine.pass_recent where queue = 'wc'").astimezone(UTC)
    assert f"of the keys {ended:%Y-%m-%d %H:%M:%S} UTC" in page.text
    assert "wc_updates" in page.text
    assert "word text (key), n bigint (value)" in page.text
    assert len(page.all("svg")) == 4


@pytest.mark.wc
def test_cells_show_the_buckets(conn: psycopg.Connection, dsn: str) -> None:
    add(conn, {f"w{i}": 1 for i in range(200)})
    pending = dict(conn.execute("select bucket, pending from pgcombine.bucket_stat").fetchall())
    assert sum(pending.values()) == 200
    conn.execute(
        "insert into pgcombine.failure (queue, bucket, attempts, sqlstate, error)"
        " values ('wc', 2, 3, '22012', 'division <by> zero')"
    )
    with served(dsn) as client:
        page = read(client.get("/queues/wc"))
    for bucket, count in pending.items():
        failing = bucket == 2
        assert f"bucket {bucket}: {'✖ ' * failing}{count} pending{', failing' * failing}" in page.text
    cells = [item["class"] for item in page.all("li") if "heat" in item.get("class", "")]
    assert len(cells) == 4
    assert any("heat-5" in one for one in cells)
    assert sum("heat-failing" in one for one in cells) == 1
    assert "wc ✖ failing" in page.text
    assert "Bucket 2 has failed 3 times" in page.text
    assert "division <by> zero 22012" in page.text


@pytest.mark.wc
@embedded_only
def test_worker_that_lacks_a_connection_is_shown(
    conn: psycopg.Connection, dsn: str, roles: Roles, impatient: None
) -> None:
    role = roles.login().info.user
    conn.execute("select pgcombine.grant_right('work', %s)", (role,))
    limit = sql.SQL("alter role {} connection limit {}")
    conn.execute(limit.format(sql.Identifier(role), 4))  # the test's own connection is one of them
    with workers(as_role(dsn, role), count=2), served(dsn) as client:
        text = eventually(lambda: "A worker waits for a connection" in (text := read(client.get("/")).text) and text)
        assert "1 worker: ▲ waiting for a connection" in text
        conn.execute(limit.format(sql.Identifier(role), -1))
        text = eventually(lambda: "1 worker: idle" in (text := read(client.get("/")).text) and text)
        assert "A worker waits" not in text


@pytest.mark.wc
def test_incoming_updates_are_counted_whether_or_not_they_are_combined(conn: psycopg.Connection, dsn: str) -> None:
    now = time.time()
    database = Database(dsn)
    history = History(database, clock=lambda: now)

    def rate() -> Any:
        (row,) = history.poll()
        return Lines(history, clock=lambda: now).charts(row).rates.lines[1].last

    def append(count: int) -> None:
        add(conn, [(f"w{number}", 1) for number in range(count)])
        conn.execute("select pg_stat_force_next_flush()")

    try:
        append(50)
        assert rate() is None, "one count has no rate"
        append(600)
        now += 30
        assert rate() == 20
        combine_all(conn)
        now += 30
        assert rate() == 10, "a pass appends nothing to the log"
    finally:
        database.close()


@pytest.mark.wc
def test_throughput_is_shown_by_minute(conn: psycopg.Connection, dsn: str) -> None:
    conn.execute(
        "insert into pgcombine.pass_minute select 'wc', date_trunc('minute', now()) - make_interval(mins => i), 1, 600,"
        " 60, 60, 0.1 from unnest(array[10, 9, 5]) i"
    )
    with served(dsn) as client:
        text = read(client.get("/queues/wc")).text
    assert "Updates/s 0 combined" in text
    assert re.search(r"Changes/s 0 highest 1 at \d\d:\d\d", text)


def test_page_shows_the_greatest_values(busy: None, dsn: str) -> None:
    with served(dsn) as client:
        page = read(client.get("/queues/wc/keys"))
        other = read(client.get("/queues/wc/keys", params={"by": "n; drop table x"}))
    assert "word n fluo 4 spark 1" in page.text
    assert other.text == page.text


def test_page_shows_a_quarantined_key_with_its_updates(busy: None, conn: psycopg.Connection, dsn: str) -> None:
    number = one(conn, "select id from pgcombine.quarantine")
    with served(dsn) as client:
        page = read(client.get(f"/queues/wc/quarantine/{number}"))
        unknown = client.get("/queues/wc/quarantine/99999999999999999999")
    assert "A quarantined key word bad error bigint out of range 22003" in page.text
    assert "Updates word n bad 1" in page.text
    assert page.all("form") == [], "without actions a page must have no form"
    assert unknown.status_code == 404


def test_pages_show_exports_servers_and_loads(busy: None, conn: psycopg.Connection, dsn: str) -> None:
    conn.execute("select pgcombine.pause_export('search', 'the <disk> is full')")
    with served(dsn) as client:
        exports, servers, loads = (read(client.get(path)).text for path in ("/exports", "/servers", "/loads"))
    assert "search of wc" in exports
    assert "‖ paused the <disk> is full" in exports
    assert re.search(r"there ✓ up 1 3 1 h", servers)
    assert "run <1> wc stage 0" in loads


def test_doctor_runs_in_the_background(
    busy: None, dsn: str, quick_doctor: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkup, "YOUNGEST", -1.0)
    with served(dsn) as client:
        client.get("/")
        eventually(lambda: "✖ 1 error doctor" in read(client.get("/")).text)
        text = read(client.get("/doctor")).text
        assert "1 error, 0 warnings, 0 info, 1 ok" in text
        assert "✖ error disk wc it <is> full make room" in text
        assert len(quick_doctor) == 1, "the page must keep the doctor's result"
        assert post(client, "/doctor", form_key(client, "/doctor")).headers["location"] == "/doctor"
        eventually(lambda: len(quick_doctor) == 2)


@embedded_only
def test_page_is_never_green_beside_an_alarm(
    conn: psycopg.Connection, dsn: str, impatient: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page with an alarm doesn't say that nothing is wrong. If the alarms change, the doctor runs again."""
    monkeypatch.setattr(checkup, "YOUNGEST", -1.0)
    calls: list[str] = []

    def examine(dsn: str) -> list[Finding]:
        calls.append(dsn)
        return [Finding(Level.ok, "it answers", "", "", None, "server")]

    monkeypatch.setattr(checkup, "examine", examine)
    make_queue(conn)

    def told() -> str:
        text = read(client.get("/")).text
        assert not ("✓ doctor: nothing is wrong" in text and re.search("[▲✖⚑]", text))
        (card,) = re.findall(r"(?:✓ )?doctor: (?:checking …|nothing else is wrong|nothing is wrong)", text)
        return str(card).replace("doctor: ", "")

    with served(dsn) as client:
        assert "▲ none no worker is connected" in read(client.get("/")).text
        eventually(lambda: told() == "nothing else is wrong")
        with workers(dsn):
            eventually(lambda: told() == "✓ nothing is wrong")
            looks = len(calls)
            for path in ("/", "/doctor", "/"):
                client.get(path)
            assert len(calls) == looks
            add(conn, {"bad": 1})
            eventually(lambda: one(conn, "select pgcombine.backlog('wc')") == 0)
            hold(conn, word="bad")
            assert told() != "✓ nothing is wrong"
            eventually(lambda: told() == "nothing else is wrong")
            assert len(calls) == looks + 1
            conn.execute("delete from pgcombine.quarantined_key")
            eventually(lambda: told() == "✓ nothing is wrong")
            conn.execute("select pgcombine.pause('wc')")
            assert told() == "checking …"
            eventually(lambda: told() == "✓ nothing is wrong")
            assert len(calls) == looks + 3
            assert re.search(r"✓ doctor: nothing is wrong, \d+ s ago", read(client.get("/")).text)
            assert re.search(r"\d+ s ago \(\d{4}-", read(client.get("/doctor")).text)


def test_doctor_examines_the_database_of_the_page(busy: None, dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkup, "examine", examine)
    with served(dsn) as client:
        client.get("/doctor")
        eventually(lambda: " ok." in read(client.get("/doctor")).text, timeout=60)
        text = read(client.get("/doctor")).text
    assert "▲ warning quarantine wc" in text
    assert "✓ ok schema" in text


def test_hostile_texts_are_shown_as_text(hostile: None, conn: psycopg.Connection, dsn: str) -> None:
    numbers = [number for (number,) in conn.execute("select id from pgcombine.quarantine")]
    assert len(numbers) == len(HOSTILE)
    with served(dsn, actions=True) as client:
        answers = {path: client.get(path) for path in PAGES}
        answers |= {str(number): client.get(f"/queues/wc/quarantine/{number}") for number in numbers}
    shown_pages = {name: read(answer) for name, answer in answers.items()}
    for page in shown_pages.values():
        assert page.all("script") == [{"src": "/static/page.js", "defer": ""}]
        assert not {"img", "style", "iframe", "object"} & {tag for tag, _ in page.tags}
        assert not [name for _, attrs in page.tags for name in attrs if name.startswith("on") or name == "style"]
    for answer in answers.values():
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]", answer.text)
    held = "".join(shown_pages[str(number)].text for number in numbers)
    for word in HOSTILE:
        assert " ".join(shown(word, 80).split()) in shown_pages["/queues/wc"].text
        assert " ".join(shown(word).split()) in shown_pages["/queues/wc/keys"].text
        assert " ".join(shown(word, 3000).split()) in held


@embedded_only
def test_wrong_paths_show_an_error_page(busy: None, dsn: str) -> None:
    titles = {
        "/nothing": (404, "There is no such page"),
        "/queues/nothing": (404, "Not found"),
        "/queues/nothing/keys": (404, "Not found"),
        "/queues/<b>": (404, "There is no such page"),
        "/queues/wc/pause": (405, "This page doesn't support that method"),
        "/queues/wc/quarantine/drop": (405, "This page doesn't support that method"),
    }
    with served(dsn, actions=True) as client:
        for path, (status, title) in titles.items():
            answer = client.get(path)
            assert answer.status_code == status, path
            assert title in read(answer).text
            assert read(answer).all("b") == []
            assert read(answer).all("body") == [{"data-refresh": "0"}]


def test_lacking_rights_become_a_sentence(busy: None, conn: psycopg.Connection, dsn: str, roles: Roles) -> None:
    role = roles.login().info.user
    with served(as_role(dsn, role), actions=True) as client:
        refused = client.get("/")
        assert refused.status_code == 403
        assert f"select pgcombine.grant_right('monitor', '{role}')" in read(refused).text
    conn.execute("select pgcombine.grant_right('read', %s, 'wc')", (role,))
    conn.execute("select pgcombine.grant_right('monitor', %s)", (role,))
    with served(as_role(dsn, role), actions=True) as client:
        page = read(client.get("/queues/wc"))
        assert "1 key quarantined. Only a role with the right to work sees the keys" in page.text
        assert page.all("form") == []
        assert "fluo 4" in read(client.get("/queues/wc/keys")).text
        exports = read(client.get("/exports")).text
        assert "search of wc" in exports
        refused = post(client, "/queues/wc/pause", form_key(client, "/doctor"))
        assert refused.status_code == 403
        assert f'role "{role}" lacks the right work' in read(refused).text
        assert f"select pgcombine.grant_right('work', '{role}')" in read(refused).text
    assert one(conn, "select paused from pgcombine.queue where queue = 'wc'") is False
    conn.execute("select pgcombine.revoke_right('read', %s, 'wc')", (role,))
    with served(as_role(dsn, role)) as client:
        assert "wc has quarantined keys" in read(client.get("/")).text
        keys = read(client.get("/queues/wc/keys")).text
        assert "The page's role isn't allowed to see this: permission denied for table wc_values" in keys
        assert "there ✓ up" in read(client.get("/servers")).text


@embedded_only
def test_locked_table_blocks_no_page(busy: None, dsn: str) -> None:
    with psycopg.connect(dsn) as blocker, served(dsn) as client:
        blocker.execute("lock table pgcombine.wc_values in access exclusive mode")
        assert "Another session has locked this" in read(client.get("/queues/wc/keys")).text
        assert client.get("/queues/wc").status_code == 200


@pytest.mark.wc
@embedded_only
def test_page_leaves_out_a_slow_statement(conn: psycopg.Connection, dsn: str) -> None:
    """A view that sleeps for ten minutes replaces the table of values."""
    conn.execute("alter table pgcombine.wc_values rename to wc_others")
    conn.execute("create view pgcombine.wc_values as select 'a' as word, 1 as n from pg_sleep(600)")
    with served(dsn, seconds=0.5) as client:
        assert "This took too long, so it was left out" in read(client.get("/queues/wc/keys")).text


def test_page_recovers_after_a_lost_database(busy: None, dsn: str, server: Server, impatient: None) -> None:
    name = str(psycopg.conninfo.conninfo_to_dict(dsn)["dbname"])
    allow = sql.SQL("alter database {} with allow_connections {}")
    end = sql.SQL(
        "select pg_terminate_backend(pid) from pg_stat_activity"
        " where datname = {} and application_name = 'pgcombine web'"
    )
    with served(dsn) as client:
        assert [client.get(path).status_code for path in PAGES] == [200] * len(PAGES)
        server.execute(allow.format(sql.Identifier(name), sql.SQL("false")))
        try:
            server.execute(end.format(sql.Literal(name)))
            for path in OF_THE_DATABASE:
                answer = eventually(lambda path=path: (got := client.get(path)).status_code != 200 and got)
                assert answer.status_code == 503
                page = read(answer)
                assert "The database doesn't answer" in page.text
                assert "not currently accepting connections" in page.text
                assert page.all("body") == [{"data-refresh": "5"}], "the browser must try again"
            assert client.get("/healthz").text == "ok\n"
        finally:
            server.execute(allow.format(sql.Identifier(name), sql.SQL("true")))
        for path in PAGES:
            eventually(lambda path=path: client.get(path).status_code == 200)


@embedded_only
def test_lost_connections_cause_no_error(busy: None, conn: psycopg.Connection, dsn: str, impatient: None) -> None:
    with served(dsn) as client:
        for _ in range(2):
            assert client.get("/queues/wc").status_code == 200
            ended = one(
                conn,
                "select count(pg_terminate_backend(pid, 10000)) from pg_stat_activity"
                " where datname = current_database() and application_name = 'pgcombine web'",
            )
            assert 1 <= ended <= 4


@embedded_only
def test_page_reports_a_missing_schema(empty_dsn: str) -> None:
    with served(empty_dsn) as client:
        answer = client.get("/")
    assert answer.status_code == 503
    assert "run 'pgcombine db upgrade'" in read(answer).text
