"""The functions that make the pages: they read the database in short transactions, and fill in templates."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import psycopg
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from pgcombine.database.connect import Connection
from pgcombine.errors import PgCombineError, QueueNotFoundError
from pgcombine.queue.status import Column
from pgcombine.queue.status import columns as columns_of
from pgcombine.web import charts, figures
from pgcombine.web.checkup import Checkup
from pgcombine.web.database import Database
from pgcombine.web.guard import Keys
from pgcombine.web.history import History
from pgcombine.web.lines import Lines
from pgcombine.web.texts import FILTERS, counted
from pgcombine.web.verdict import STATES, TROUBLES, is_alone, is_served, state_of, verdict

REFRESH = 5  # seconds after which an open page refreshes
OLD_SNAPSHOT = 60.0  # seconds
MOST_PANELS = 6  # greatest number of queues with large charts on the overview
MOST_BUCKETS = 512  # greatest number of cells of a heat map
REFUSED = 50  # greatest number of refused entries on the page of exports
LONGEST_NAME = 40
DONE = {  # the message that a page shows after an action, by outcome
    "paused": "Paused until it is resumed.",
    "resumed": "Resumed. Workers try at once.",
    "retried": "Pending again: {}.",
    "dropped": "Deleted: {}.",
}


@dataclass
class Site:
    """What all pages share.

    ``actions`` says whether readers may change queues and exports. ``version`` is the program's version. ``names`` is
    the result of :func:`pgcombine.web.figures.identity`, and empty until a page has read it. ``stop`` is set when the
    server ends. ``streams`` is the number of streams of events that are being sent.
    """

    database: Database
    history: History
    lines: Lines
    checkup: Checkup
    keys: Keys
    actions: bool
    version: str
    stop: threading.Event
    names: Mapping[str, str] = field(default_factory=dict)
    streams: int = 0


@cache
def templates() -> Environment:
    """Return the environment of the templates. It escapes the texts that a template inserts."""
    found = Environment(
        loader=PackageLoader("pgcombine.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters.update(FILTERS)
    found.globals["units"] = FILTERS
    return found


def site_of(request: Request) -> Site:
    site: Site = request.app.state.site
    return site


def page(request: Request, template: str, status: int = 200, **context: Any) -> HTMLResponse:
    site = site_of(request)
    values = {
        "site": site,
        "names": site.names,
        "path": request.url.path,
        "form_key": site.keys.form,
        "refresh": REFRESH,
        "done": _done(request),
    }
    return HTMLResponse(templates().get_template(template).render(values | context), status)


def _done(request: Request) -> str:
    """Return the message about the action that led to this page, or an empty text."""
    text = DONE.get(request.query_params.get("done", ""), "")
    count = request.query_params.get("count", "")
    known = count.isascii() and count.isdigit() and len(count) < 19
    return text.format(counted(int(count), "update") if known else "the updates")


def identified(site: Site, connection: Connection) -> None:
    """Read the site's names from the database, unless the site has them already."""
    if not site.names:
        site.names = figures.identity(connection)


def overview(request: Request) -> Response:
    """The page with all alarms, and with all queues or those whose names contain the parameter ``find``.

    The worst queues, and then the busiest ones, have large charts.
    """
    site = site_of(request)
    rows, found, alarms = alarms_of(site)
    states = watched(rows, alarms)
    result, _ = site.checkup.result(states)
    wanted = request.query_params.get("find", "").strip().lower()[:LONGEST_NAME]
    queues = sorted(
        (row for row in rows if wanted in row["queue"]), key=lambda row: (STATES.index(row["state"]), row["queue"])
    )
    ranked = sorted(queues, key=lambda row: (STATES.index(row["state"]), -row["updates_per_second_1m"]))
    large = {row["queue"] for row in ranked[:MOST_PANELS]}
    panels = [row for row in queues if row["queue"] in large]
    drawn = {
        row["queue"]: site.lines.charts(row, charts.CHART if row["queue"] in large else charts.SPARK) for row in rows
    }
    incoming = {row["queue"]: site.lines.incoming(row["queue"]) for row in rows}
    known = [rate for rate in incoming.values() if rate is not None]

    def read(connection: Connection) -> dict[str, Any]:
        held = [row["queue"] for row in panels if row["quarantined_keys"]]
        return {
            **found,
            "operable": figures.operable(connection, [*large]),
            "failing": figures.part(connection, "failing_buckets"),
            "held": {name: figures.part(connection, "web_quarantined_keys", name, 1) for name in held},
            "destinations": figures.part(connection, "web_destinations"),
        }

    return page(
        request,
        "overview.html",
        panels=panels,
        others=[row for row in queues if row["queue"] not in large],
        all=rows,
        charts=drawn,
        incoming=incoming,
        arriving=sum(known) if known else None,
        find=wanted,
        worst=max(rows, key=lambda row: float(row["lag_seconds"]), default=None),
        troubles=TROUBLES,
        verdict=verdict(rows, found, result.counts["error"] if result else 0),
        result=result,
        alarms=alarms,
        current=result is not None and result.states == states,
        **site.database.run(read),
    )


def alarms_of(site: Site) -> tuple[list[dict[str, Any]], dict[str, figures.Part], frozenset[str]]:
    """Return the rows of ``web_queues`` with their states, some parts, and a name for each alarm on the overview.

    The parts are ``workers``, ``snapshots`` and ``down``, which has the exports whose destination is down or suspect.
    """
    rows = site.history.poll()

    def read(connection: Connection) -> dict[str, figures.Part]:
        identified(site, connection)
        return {
            "workers": figures.workers(connection),
            "snapshots": figures.snapshots(connection, OLD_SNAPSHOT),
            "down": figures.part(connection, "web_exports"),
        }

    found = site.database.run(read)
    found["down"] = figures.Part([one for one in found["down"].rows if one["state"] in ("down", "suspect")])
    told = [{**row, "state": state_of(row, is_served(row["queue"], found["workers"]))} for row in rows]
    # the number of failing buckets lets the doctor run again when more buckets fail
    alarms = {f"{row['queue']} {row['state']} {row['failing_buckets']}" for row in told if row["state"] in TROUBLES}
    alarms |= {f"snapshot {one['holder']} {one['name']} {one['pid']}" for one in found["snapshots"].rows}
    alarms |= {f"export {one['export']} {one['state']}" for one in found["down"].rows}
    alarms |= {f"worker {one['worker']}" for one in found["workers"].rows if one["state"] == "connecting"}
    if is_alone(found["workers"]):
        alarms.add("no worker")
    return told, found, frozenset(alarms)


def watched(rows: Sequence[Mapping[str, Any]], alarms: frozenset[str]) -> frozenset[str]:
    """Return the names of the alarms, and a name for each paused queue: the states for Checkup.result."""
    return alarms | {f"{row['queue']} paused" for row in rows if row["paused"]}


def queue(request: Request) -> Response:
    """The page of one queue."""
    site = site_of(request)
    name: str = request.path_params["queue"]
    row = next((one for one in site.history.poll() if one["queue"] == name), None)
    if row is None:
        raise QueueNotFoundError(f'there is no queue "{name}", or the page\'s role has no right on it', queue=name)

    def read(connection: Connection) -> dict[str, Any]:
        identified(site, connection)
        names = ("buckets", "passes", "sizes")
        found = {part: figures.part(connection, f"web_{part}", name) for part in names}
        return {
            **found,
            "quarantined": figures.part(connection, "web_quarantined_keys", name, figures.QUARANTINED_KEYS),
            "failing": figures.part(connection, "failing_buckets"),
            "workers": figures.workers(connection),
            "columns": columns_of(connection, name),
            "operable": figures.operable(connection, [name]),
        }

    found = site.database.run(read)
    buckets = found["buckets"].rows
    most = max((bucket["pending"] for bucket in buckets), default=0)
    return page(
        request,
        "queue.html",
        row={**row, "state": state_of(row, is_served(name, found["workers"]))},
        charts=site.lines.charts(row),
        cells=[{**one, "level": charts.level(one["pending"], most)} for one in buckets[:MOST_BUCKETS]],
        more_buckets=max(0, len(buckets) - MOST_BUCKETS),
        **found,
    )


def greatest(request: Request) -> Response:
    """The page of a queue's keys with the greatest values."""
    site = site_of(request)
    name: str = request.path_params["queue"]

    def read(connection: Connection) -> tuple[figures.Part, list[Column], str]:
        identified(site, connection)
        columns = columns_of(connection, name)
        values = [column.name for column in columns if column.role == "value"]
        wanted = request.query_params.get("by")
        by: str = next((name for name in values if name == wanted), values[0])
        return figures.greatest(connection, name, columns, by), columns, by

    part, columns, by = site.database.run(read)
    return page(request, "keys.html", queue=name, part=part, columns=columns, by=by)


def quarantined_key(request: Request) -> Response:
    """The page of a quarantined key with its updates."""
    site = site_of(request)
    name: str = request.path_params["queue"]
    number: int = request.path_params["number"]

    def read(connection: Connection) -> dict[str, Any]:
        identified(site, connection)
        row = figures.quarantined_key(connection, name, number)
        columns = columns_of(connection, name)
        found: dict[str, Any] = {"row": row, "columns": columns, "updates": figures.Part(), "operable": ()}
        if row is not None:
            found["updates"] = figures.quarantined_updates(connection, name, number, columns)
            found["operable"] = figures.operable(connection, [name])
        return found

    found = site.database.run(read)
    return page(request, "quarantined.html", 200 if found["row"] else 404, queue=name, **found)


def exports(request: Request) -> Response:
    """The page of the exports, the destinations and the quarantined entries."""
    return _listed(request, "exports.html", {"exports": (), "destinations": (), "refused": (REFUSED,)})


def servers(request: Request) -> Response:
    """The page of the other servers, with the writes that wait for them, and of the shards of fronts."""
    return _listed(request, "servers.html", {"hints": (), "destinations": (), "fronts": ()})


def loads(request: Request) -> Response:
    """The page of the loads from Spark."""
    return _listed(request, "loads.html", {"loads": ()})


def _listed(request: Request, template: str, parts: Mapping[str, tuple[Any, ...]]) -> Response:
    """Return a page of tables. ``parts`` maps the name of a table to the parameters of its query ``web_<name>``."""
    site = site_of(request)

    def read(connection: Connection) -> dict[str, figures.Part]:
        identified(site, connection)
        return {name: figures.part(connection, f"web_{name}", *given) for name, given in parts.items()}

    found: dict[str, Any] = {**site.database.run(read)}
    return page(request, template, **found)


def doctor(request: Request) -> Response:
    """The page of the doctor's findings."""
    site = site_of(request)
    states = None
    with suppress(PgCombineError, psycopg.Error):  # the doctor's findings will report the error
        rows, _, alarms = alarms_of(site)
        states = watched(rows, alarms)
    result, checking = site.checkup.result(states)
    return page(request, "doctor.html", result=result, checking=checking)


async def health(request: Request) -> Response:
    """Answer ``/healthz`` with 200. This needs neither the database nor a thread of the thread pool."""
    return Response("ok\n", media_type="text/plain")
