"""The pages in a real browser.

The tests keep pictures in the directory that ``PGCOMBINE_TEST_PICTURES`` names, else in a temporary directory.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import httpx2
import psycopg
import pytest
from psycopg import sql
from support import eventually
from support.browser import Tab, browser
from support.exports import make_export
from support.queues import add, combine_all, hold, make_queue, one, pass_time, values
from support.servers import Server, embedded_only
from support.sessions import workers
from support.site import address, served

from pgcombine.database.connect import dicts
from pgcombine.database.sqlfiles import query
from pgcombine.doctor.findings import Finding, Level
from pgcombine.web import checkup, pages, serve
from pgcombine.web.database import Database
from pgcombine.web.history import History, Point

SIZES = ((1280, 900), (360, 900))
PHONE = (390, 844)  # the size of a telephone, in CSS pixels
COLOURS = ("light", "dark")
TOKEN = "a token of some length"

# This script finds visible texts whose contrast ratio to their background is below 4.5 (WCAG 2, AA), as [text, ratio].
PALE = """(() => {
  const parts = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
    .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const found = parts(getComputedStyle(one).backgroundColor);
      if (found.length === 3 || found[3] > 0) return found;
    }
    return [255, 255, 255];
  };
  const found = [];
  for (const element of document.body.querySelectorAll("*")) {
    const own = [...element.childNodes].filter((node) => node.nodeType === 3 && node.data.trim());
    if (!own.length || !element.checkVisibility() || element.closest(".skip, .hidden")) continue;
    const style = getComputedStyle(element);
    const text = light(parts(element.closest("svg") ? style.fill : style.color)), back = light(behind(element));
    const ratio = (Math.max(text, back) + 0.05) / (Math.min(text, back) + 0.05);
    if (ratio < 4.5) found.push([own[0].data.trim().slice(0, 40), ratio]);
  }
  return found;
})()"""

# This script finds what a screen reader lacks, such as the name of a control, a table row's heading, or a unique id.
UNNAMED = """(() => {
  const found = [];
  const named = (one) => (one.getAttribute("aria-label") || one.textContent || "").trim() ||
    (one.labels && one.labels.length);
  for (const one of document.querySelectorAll("a, button, summary, input:not([type=hidden]), svg, nav, [role]"))
    if (!named(one) && one.getAttribute("role") !== "status") found.push(one.outerHTML.slice(0, 80));
  if (document.querySelectorAll("h1").length !== 1) found.push("not one h1");
  const ids = [...document.querySelectorAll("[id]")].map((one) => one.id);
  if (new Set(ids).size !== ids.length) found.push("an id twice");
  for (const one of document.querySelectorAll("[aria-labelledby]"))
    if (!document.getElementById(one.getAttribute("aria-labelledby"))) found.push("no " + one.outerHTML.slice(0, 80));
  for (const row of document.querySelectorAll("tbody tr"))
    if (!row.querySelector("th[scope=row]")) found.push("no head: " + row.textContent.slice(0, 80));
  if (!document.title || !document.documentElement.lang) found.push("no title or language");
  return found;
})()"""


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory for the pictures."""
    chosen = os.environ.get("PGCOMBINE_TEST_PICTURES")
    directory = Path(chosen) if chosen else tmp_path_factory.mktemp("pictures")
    directory.mkdir(parents=True, exist_ok=True)
    return directory


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    """One browser for all tests of this module."""
    with browser(tmp_path_factory.mktemp("browser")) as tab:
        yield tab


@pytest.fixture
def tab(opened: Tab) -> Tab:
    """The browser's tab, empty, without cookies and 1280 pixels wide."""
    opened.open("about:blank")  # ends the last test's page, which would still ask for its server
    opened.call("Network.clearBrowserCookies")
    opened.size(1280)
    return opened


@pytest.fixture
def quick(impatient: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let open pages refresh every 0.2 seconds."""
    monkeypatch.setattr(pages, "REFRESH", 0.2)


@pytest.fixture
def healthy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the doctor find nothing wrong."""
    monkeypatch.setattr(checkup, "examine", lambda _: [Finding(Level.ok, "it answers", "", "", None, "server")])


def look_at(
    tab: Tab,
    client: httpx2.Client,
    name: str,
    path: str,
    pictures: Path,
    sizes: Iterable[tuple[int, int]] = SIZES,
    check: Callable[[str], None] = lambda _: None,
) -> None:
    """Open a page at all sizes, light and dark. Keep pictures, and check layout, contrast, names and requests.

    ``check`` is called with the name of each picture, while the tab shows the page.
    """
    for width, height in sizes:
        for colour in COLOURS:
            tab.size(width, height, dark=colour == "dark")
            tab.open(address(client) + path)
            eventually(lambda: tab.run("document.querySelector('[data-once] > p > a[href$=\"/keys\"]') === null"))
            where = f"{name}-{width}-{colour}"
            tab.picture(pictures / f"{where}.png")
            assert tab.run("document.documentElement.scrollWidth") <= width, where
            assert tab.run(PALE) == [], where
            assert tab.run(UNNAMED) == [], where
            check(where)
            assert tab.complaints() == [], where
            assert {url.split("/")[2] for url in tab.requested() if not url.startswith("data:")} == {
                address(client).removeprefix("http://")
            }, where


RATES = {"page_views": 120, "spend": 40, "stock": 8}  # updates a second in each queue of the states below


def make_load(conn: psycopg.Connection, *names: str, combined: bool = True) -> None:
    """Make queues with the updates of a minute, which are combined or pending."""
    for name in names:
        make_queue(conn, name, buckets=2)
        add(conn, [(f"w{number % 50}", 1) for number in range(60 * RATES[name])], name)
        if combined:
            combine_all(conn, name)


def past(stopped: Mapping[str, int]) -> type[History]:
    """A history that has known the queues for an hour. ``stopped`` says for how many seconds one wasn't combined."""

    class Past(History):
        def __init__(self, database: Database) -> None:
            super().__init__(database)
            self.began -= 3600
            rows = database.run(lambda connection: dicts(connection, query("web_queues")))
            for row in rows:
                inserted, points = row["inserted"], self._points[row["queue"]]
                for ago in range(5, 3600, 5):
                    rate = RATES[row["queue"]] * (1 + 0.3 * math.sin(ago / 500))
                    idle = max(0, stopped.get(row["queue"], 0) - ago)
                    lag = idle or 0.05 + 0.02 * math.sin(ago)
                    combined = rate * max(0, 1 - idle / 60)
                    inserted -= round(rate * 5)
                    points.appendleft(Point(self.began + 3600 - ago, rate * idle, lag, combined, combined, inserted))

    return Past


def make_fresh(conn: psycopg.Connection) -> None:
    """No queue, no worker."""


def make_busy(conn: psycopg.Connection) -> None:
    """Three queues that are well."""
    make_load(conn, *RATES)


def make_failing(conn: psycopg.Connection) -> None:
    """For six minutes an observer has failed; a key of another queue is quarantined, and a destination is down."""
    make_load(conn, "page_views", combined=False)
    conn.execute("create table audit (word text, n bigint)")
    conn.execute(
        "select pgcombine.add_observer('page_views', 'audit',"
        " 'insert into public.audit select word, new_n from changes')"
    )
    conn.execute("drop table audit")
    pass_time(conn, 360)
    make_load(conn, "spend", "stock")
    add(conn, {"acme": 5}, "stock")
    hold(conn, "stock", 5, "bigint out of range", word="acme")
    make_export(conn, queue="spend")
    conn.execute(
        "update pgcombine.destination_state set state = 'down', failures = 12, reason = 'connection refused',"
        " retry_at = now() + interval '40 s' where name = 'search'"
    )


def make_paused(conn: psycopg.Connection) -> None:
    """A queue has been paused for four minutes, and updates wait."""
    make_load(conn, "spend", combined=False)
    conn.execute("select pgcombine.pause('spend')")
    pass_time(conn, 240)
    make_load(conn, "page_views", "stock")


def make_alone(conn: psycopg.Connection) -> None:
    """For five minutes no worker has combined updates."""
    make_load(conn, *RATES, combined=False)
    pass_time(conn, 300)


@pytest.mark.parametrize(
    ("make", "stopped", "headline", "first"),
    [
        (make_fresh, {}, "There is no queue yet", None),
        (make_busy, {}, "✓ All 3 queues are well", "page_views"),
        (make_failing, {"page_views": 360}, "✖ page_views is failing", "page_views"),
        (make_paused, {"spend": 240}, "▲ spend is paused, and updates wait", "spend"),
        (make_alone, dict.fromkeys(RATES, 300), "✖ 3 queues have no worker", "page_views"),
    ],
)
@embedded_only
def test_first_page_shows_the_state_at_a_glance(
    conn: psycopg.Connection,
    dsn: str,
    tab: Tab,
    pictures: Path,
    healthy: None,
    monkeypatch: pytest.MonkeyPatch,
    make: Callable[[psycopg.Connection], None],
    stopped: dict[str, int],
    headline: str,
    first: str | None,
) -> None:
    """On a desk and on a telephone, without scrolling, one sees what is wrong and the reason."""
    make(conn)
    monkeypatch.setattr(serve, "History", past(stopped))

    def check(where: str) -> None:
        height = tab.run("innerHeight")
        assert tab.run("document.querySelector('h1').textContent") == headline, where
        assert tab.run("document.title").startswith(headline), where
        assert bottom("h1") < height / 3, where
        assert tab.run("document.querySelector('.panel h2')?.textContent ?? null") == first, where
        if first is not None:
            assert bottom(".panel h2") < height, where
            found = tab.run("[...document.querySelectorAll('.panel .line')].map((one) => one.getTotalLength())")
            assert len(found) == 9, "each queue has a line of its lag, and two of its rates"
            assert min(found) > 500, f"{where}: a line is shorter than most of the chart's width"
        if stopped:
            assert bottom(".panel .warning") < height, where

    def bottom(selector: str) -> float:
        place = tab.run(f"document.querySelector({selector!r}).getBoundingClientRect().bottom")
        assert isinstance(place, (int, float))
        return place

    with ExitStack() as stack:
        if make not in (make_fresh, make_alone):
            stack.enter_context(workers(dsn))
            eventually(lambda: one(conn, "select count(*) from pgcombine.worker") == 1)
        if make is make_failing:
            eventually(lambda: one(conn, "select coalesce(min(attempts), 0) from pgcombine.failure") >= 3)
            conn.execute("update pgcombine.failure set since = since - interval '6 minutes'")
        client = stack.enter_context(served(dsn, actions=True))
        name = make.__name__.replace("make_", "state-")
        look_at(tab, client, name, "/", pictures, [(1280, 900), PHONE], check)


@embedded_only
def test_retry_now_ends_a_failure(conn: psycopg.Connection, dsn: str, tab: Tab, quick: None, healthy: None) -> None:
    """A worker that would wait for an hour tries at once, and the open page follows."""
    headline = "document.querySelector('h1')?.textContent"
    words = {f"w{number}": 1 for number in range(20)}
    make_queue(conn, buckets=1)
    conn.execute("create table audit (word text, n bigint)")
    conn.execute(
        "select pgcombine.add_observer('wc', 'audit', 'insert into public.audit select word, new_n from changes')"
    )
    conn.execute("alter table audit rename to lost")
    with workers(dsn), served(dsn, actions=True) as client:
        tab.open(address(client) + "/")
        eventually(lambda: tab.run(headline) == "✓ wc is well")
        add(conn, words)
        eventually(lambda: tab.run(headline) == "✖ wc is failing")
        assert "42P01" in tab.run("document.querySelector('.panel .warning').textContent")
        assert tab.run("document.title").startswith("✖ wc is failing")
        conn.execute("update pgcombine.failure set retry_at = now() + interval '1 h'")
        conn.execute("alter table lost rename to audit")
        tab.run("document.querySelector('.panel button').click()")
        eventually(lambda: values(conn) == words)
        eventually(lambda: tab.run(headline) == "✓ wc is well")
        assert tab.run("document.querySelector('.done').textContent") == "✓ Resumed. Workers try at once."
        assert tab.complaints() == []


@embedded_only
def test_pages_of_few_queues_look_right(
    busy: None, conn: psycopg.Connection, dsn: str, tab: Tab, pictures: Path
) -> None:
    number = one(conn, "select id from pgcombine.quarantine")
    with served(dsn, actions=True) as client:
        for name, path in {
            "queues": "/",
            "queue": "/queues/wc",
            "paused": "/queues/resting",
            "held": f"/queues/wc/quarantine/{number}",
            "exports": "/exports",
            "servers": "/servers",
            "loads": "/loads",
            "doctor": "/doctor",
        }.items():
            look_at(tab, client, f"few-{name}", path, pictures)


@pytest.mark.wc
@embedded_only
def test_phone_shows_passes_before_values(conn: psycopg.Connection, dsn: str, tab: Tab, pictures: Path) -> None:
    """On a narrow screen, the page of a queue shows ten passes and then 20 values, and isn't too long."""
    for _ in range(5):
        add(conn, {f"word{i}": i for i in range(200)})
        combine_all(conn)
    with served(dsn, actions=True) as client:
        tab.size(360)
        tab.open(address(client) + "/queues/wc")
        eventually(lambda: tab.run("document.querySelectorAll('#keys tbody tr').length") == 20)
        tab.picture(pictures / "phone-queue.png")
        assert tab.run("document.querySelectorAll('#passes tbody tr').length") == 10
        places = "[...document.querySelectorAll('h2')].map((one) => one.textContent)"
        assert tab.run(places) == ["Buckets", "Quarantine", "Recent passes", "Tables", "Greatest values"]
        assert tab.run("document.documentElement.scrollHeight") < 3600


@embedded_only
def test_pages_with_hostile_keys_look_right(hostile: None, dsn: str, tab: Tab, pictures: Path) -> None:
    with served(dsn, actions=True) as client:
        look_at(tab, client, "hostile-queue", "/queues/wc", pictures)
        look_at(tab, client, "hostile-keys", "/queues/wc/keys", pictures)


@pytest.mark.slow
@embedded_only
def test_pages_of_many_queues_look_right(conn: psycopg.Connection, dsn: str, tab: Tab, pictures: Path) -> None:
    """200 queues have three hours of passes. One queue fails, and one is paused."""
    for number in range(200):
        make_queue(conn, f"orders_of_region_{number:03}", buckets=64 if number == 7 else 1)
    conn.execute(
        "insert into pgcombine.pass_minute"
        " select q.queue, date_trunc('minute', now()) - make_interval(mins => i), 60, 60 * (500 + 400 * sin(i / 9.0)),"
        " 6000, 3000 * (1 + random()), 1 from pgcombine.queue q, generate_series(1, 180) i"
    )
    busiest = "orders_of_region_007"
    add(conn, {f"w{i}": 1 for i in range(3000)}, busiest)
    conn.execute(
        "insert into pgcombine.failure (queue, bucket, attempts, sqlstate, error)"
        " values (%s, 3, 12, '22003', 'bigint out of range')",
        (busiest,),
    )
    conn.execute("select pgcombine.pause('orders_of_region_150')")
    with served(dsn, actions=True) as client:
        look_at(tab, client, "many-queues", "/", pictures)
        look_at(tab, client, "many-queue", f"/queues/{busiest}", pictures)
        tab.size(1280)
        tab.open(address(client) + "/")
        tab.run("document.getElementById('find').value = '_15'")
        tab.run("document.querySelector('form.find').requestSubmit()")
        eventually(lambda: tab.run("document.querySelectorAll('.panel, #queues tbody tr').length") == 10)


@embedded_only
def test_open_page_is_kept_current(busy: None, conn: psycopg.Connection, dsn: str, tab: Tab, quick: None) -> None:
    pending = "document.querySelector('#head .cards b').textContent"
    with served(dsn, actions=True) as client:
        tab.open(address(client) + "/queues/wc")
        tab.run("window.before = true")
        tab.run("document.getElementById('drop-all').open = true")
        tab.run("document.querySelector('#quarantine a').focus()")
        assert tab.run(pending) == "0"
        add(conn, {"a": 1, "b": 1})
        eventually(lambda: tab.run(pending) == "2")
        assert tab.run("document.activeElement.closest('#quarantine') !== null"), "a refresh must keep the focus"
        assert tab.run("document.getElementById('drop-all').open"), "a refresh must keep details open"
        assert tab.run("document.getElementById('live-state').textContent") == "refreshing"
        tab.run("document.getElementById('live-toggle').click()")
        assert tab.run("document.getElementById('live-state').textContent") == "stopped"
        combine_all(conn)
        assert tab.run(f"new Promise((done) => setTimeout(() => done({pending}), 1000))") == "2"
        tab.run("document.getElementById('live-toggle').click()")
        eventually(lambda: tab.run(pending) == "0")
        assert tab.run("window.before"), "a refresh must not reload the page"
        assert tab.complaints() == []


@embedded_only
def test_open_page_shows_a_lost_database(
    busy: None, dsn: str, server: Server, tab: Tab, quick: None, pictures: Path
) -> None:
    name = str(psycopg.conninfo.conninfo_to_dict(dsn)["dbname"])
    allow = sql.SQL("alter database {} with allow_connections {}")
    end = sql.SQL(
        "select pg_terminate_backend(pid) from pg_stat_activity"
        " where datname = {} and application_name = 'pgcombine web'"
    )
    told = "document.getElementById('live-state').textContent"
    with served(dsn) as client:
        tab.open(address(client) + "/")
        server.execute(allow.format(sql.Identifier(name), sql.SQL("false")))
        try:
            server.execute(end.format(sql.Literal(name)))
            eventually(lambda: tab.run(told) == "✖ The database doesn't answer. These figures are old.")
            assert tab.run("document.querySelectorAll('.panel').length") == 3
            tab.picture(pictures / "lost-open-1280-light.png")
            tab.open(address(client) + "/")
            assert tab.run("document.querySelector('h1').textContent") == "The database doesn't answer"
            tab.picture(pictures / "lost-1280-light.png")
        finally:
            server.execute(allow.format(sql.Identifier(name), sql.SQL("true")))
        eventually(lambda: tab.run("document.querySelector('h1')?.textContent") == "✖ wc has quarantined keys")
        eventually(lambda: tab.run(told) == "refreshing")
    eventually(lambda: tab.run(told) == "✖ The page's server doesn't answer. These figures are old.")


@embedded_only
def test_keyboard_reaches_every_action(
    busy: None, conn: psycopg.Connection, dsn: str, tab: Tab, impatient: None
) -> None:
    """Without a mouse, one can pause the queue and drop all its quarantined keys."""

    def go_to(selector: str) -> None:
        for _ in range(60):
            if tab.run(f"document.activeElement.matches({selector!r})"):
                assert tab.run("getComputedStyle(document.activeElement).outlineStyle") != "none", (
                    "the focus must be visible"
                )
                return
            tab.press("Tab")
        raise AssertionError(f"60 presses of Tab don't reach {selector}")

    with served(dsn, actions=True) as client:
        tab.open(address(client) + "/queues/wc")
        tab.press("Tab")
        assert tab.run("document.activeElement.className") == "skip"
        tab.press("Enter")
        assert tab.run("document.activeElement.id") == "content"
        go_to("form[action$='/pause'] button")
        tab.press("Enter")
        eventually(lambda: tab.run("document.querySelector('.done')?.textContent") or "", what="it says what was done")
        assert one(conn, "select paused from pgcombine.queue where queue = 'wc'") is True
        go_to("#drop-all summary")
        tab.press("Enter")
        go_to("#drop-all button")
        tab.press("Enter")
        eventually(lambda: "Deleted" in (tab.run("document.querySelector('.done')?.textContent") or ""))
    assert one(conn, "select count(*) from pgcombine.quarantine") == 0
    combine_all(conn)
    assert values(conn) == {"fluo": 4, "spark": 1}


@embedded_only
def test_browser_signs_in(busy: None, dsn: str, tab: Tab, pictures: Path) -> None:
    def give(token: str) -> None:
        tab.run(f"document.getElementById('token').value = {token!r}")
        tab.run("document.querySelector('form.login').requestSubmit()")

    with served(dsn, token=TOKEN, actions=True) as client:
        tab.open(address(client) + "/queues/wc")
        assert tab.run("location.pathname") == "/login"
        tab.size(360, dark=True)
        tab.picture(pictures / "login-360-dark.png")
        give("wrong")
        eventually(lambda: tab.run("document.querySelector('[role=alert]')?.textContent"))
        give(TOKEN)
        eventually(lambda: tab.run("location.pathname") == "/queues/wc")
        assert tab.run("document.cookie") == "", "the cookie must be hidden from scripts"
        tab.loaded()
        tab.run("document.querySelector('footer form').requestSubmit()")
        eventually(lambda: tab.run("location.pathname") == "/login")
        tab.open(address(client) + "/")
        assert tab.run("location.pathname") == "/login"


@embedded_only
def test_content_policy_stops_scripts(busy: None, dsn: str, tab: Tab) -> None:
    with served(dsn) as client:
        tab.open(address(client) + "/")
        assert tab.complaints() == []
        tab.run(
            "document.body.insertAdjacentHTML('beforeend', '<img src=\"/static/icon.svg\" onload=\"window.run = 1\">')"
        )
        eventually(lambda: any("Content Security Policy" in one for one in tab.complaints()))
        assert tab.run("window.run === undefined")
        assert tab.run("fetch('http://127.0.0.1:9/').then(() => 'sent', () => 'stopped')") == "stopped"
        assert sum("Content Security Policy" in one for one in tab.complaints()) >= 2
