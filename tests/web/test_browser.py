"""The pages in a real browser.

The tests keep pictures in the directory that ``PGCOMBINE_TEST_PICTURES`` names, else in a temporary directory.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import httpx2
import psycopg
import pytest
from psycopg import sql
from support import eventually
from support.browser import Tab, browser
from support.queues import add, combine_all, make_queue, one, values
from support.servers import Server, embedded_only
from support.site import address, served

from pgcombine.web import pages

WIDTHS = (1280, 360)
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
    """The browser's tab, without cookies and 1280 pixels wide."""
    opened.call("Network.clearBrowserCookies")
    opened.size(1280)
    return opened


@pytest.fixture
def quick(impatient: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let open pages refresh every 0.2 seconds."""
    monkeypatch.setattr(pages, "REFRESH", 0.2)


def look_at(tab: Tab, client: httpx2.Client, name: str, path: str, pictures: Path) -> None:
    """Open a page at all widths, light and dark. Keep pictures, and check layout, contrast, names and requests."""
    for width in WIDTHS:
        for colour in COLOURS:
            tab.size(width, dark=colour == "dark")
            tab.open(address(client) + path)
            eventually(lambda: tab.run("document.querySelector('[data-once] > p > a[href$=\"/keys\"]') === null"))
            where = f"{name}-{width}-{colour}"
            tab.picture(pictures / f"{where}.png")
            assert tab.run("document.documentElement.scrollWidth") <= width, where
            assert tab.run(PALE) == [], where
            assert tab.run(UNNAMED) == [], where
            assert tab.complaints() == [], where
            assert {url.split("/")[2] for url in tab.requested() if not url.startswith("data:")} == {
                address(client).removeprefix("http://")
            }, where


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
        eventually(lambda: tab.run("document.querySelectorAll('#queues tbody tr').length") == 10)


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
            assert tab.run("document.querySelectorAll('#queues tbody tr').length") == 3
            tab.picture(pictures / "lost-open-1280-light.png")
            tab.open(address(client) + "/")
            assert tab.run("document.querySelector('h1').textContent") == "The database doesn't answer"
            tab.picture(pictures / "lost-1280-light.png")
        finally:
            server.execute(allow.format(sql.Identifier(name), sql.SQL("true")))
        eventually(lambda: tab.run("document.querySelector('h1')?.textContent") == "Queues")
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
