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

REFRESH = 5  # seconds after which an open page refreshes
BEHIND = 60.0  # seconds; a queue with a greater lag is "behind"
WAITING = 10.0  # seconds; a queue with a greater lag, up to BEHIND, is "waiting"
OLD_SNAPSHOT = 60.0  # seconds
MOST_BUCKETS = 512  # greatest number of cells of a heat map
REFUSED = 50  # greatest number of refused entries on the page of exports
LONGEST_NAME = 40
STATES = ("failing", "quarantine", "behind", "waiting", "unknown", "paused", "well")  # worst first
TROUBLES = STATES[:3]
DONE = {  # the message that a page shows after an action, by outcome
    "paused": "Paused until it is resumed.",
    "resumed": "Resumed.",
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


def state_of(row: Mapping[str, Any]) -> str:
    """Return the state of a queue, one of STATES, from its row of ``pgcombine.queue_stat``."""
    if row["failing_buckets"]:
        return "failing"
    if row["quarantined_keys"]:
        return "quarantine"
    if row["paused"]:
        return "paused"
    if row["lag_seconds"] > BEHIND:
        return "behind"
    if row["pending_at"] is None:
        return "unknown"
    return "waiting" if row["lag_seconds"] > WAITING else "well"


def overview(request: Request) -> Response:
    """The page with all alarms, and with all queues or those whose names contain the parameter ``find``."""
    site = site_of(request)
    rows, _ = site.history.poll()
    sparks = site.lines.sparks(rows)

    found, alarms = alarms_of(site, rows)
    states = watched(rows, alarms)
    wanted = request.query_params.get("find", "").strip().lower()[:LONGEST_NAME]
    queues = [{**row, "state": state_of(row), "sparks": sparks[row["queue"]]} for row in rows if wanted in row["queue"]]
    queues.sort(key=lambda row: (STATES.index(row["state"]), row["queue"]))
    result, _ = site.checkup.result(states)
    return page(
        request,
        "overview.html",
        queues=queues,
        all=rows,
        find=wanted,
        worst=max(rows, key=lambda row: float(row["lag_seconds"]), default=None),
        troubled=sum(state_of(row) in TROUBLES for row in rows),
        result=result,
        alarms=alarms,
        current=result is not None and result.states == states,
        old=found["snapshots"].rows,
        down=found["down"].rows,
        workers=found["workers"],
    )


def alarms_of(site: Site, rows: Sequence[Mapping[str, Any]]) -> tuple[dict[str, figures.Part], frozenset[str]]:
    """Return the parts ``workers``, ``snapshots`` and ``down``, and a name for each alarm on the overview.

    ``down`` has the exports whose destination is down or suspect.
    """

    def read(connection: Connection) -> dict[str, figures.Part]:
        identified(site, connection)
        return {
            "workers": figures.workers(connection),
            "snapshots": figures.snapshots(connection, OLD_SNAPSHOT),
            "down": figures.part(connection, "web_exports"),
        }

    found = site.database.run(read)
    found["down"] = figures.Part([one for one in found["down"].rows if one["state"] in ("down", "suspect")])
    # the number of failing buckets lets the doctor run again when more buckets fail
    alarms = {f"{row['queue']} {state_of(row)} {row['failing_buckets']}" for row in rows if state_of(row) in TROUBLES}
    alarms |= {f"snapshot {one['holder']} {one['name']} {one['pid']}" for one in found["snapshots"].rows}
    alarms |= {f"export {one['export']} {one['state']}" for one in found["down"].rows}
    if not found["workers"].rows and not found["workers"].trouble:
        alarms.add("no worker")
    return found, frozenset(alarms)


def watched(rows: Sequence[Mapping[str, Any]], alarms: frozenset[str]) -> frozenset[str]:
    """Return the names of the alarms, and a name for each paused queue: the states for Checkup.result."""
    return alarms | {f"{row['queue']} paused" for row in rows if row["paused"]}


def queue(request: Request) -> Response:
    """The page of one queue."""
    site = site_of(request)
    name: str = request.path_params["queue"]
    rows, _ = site.history.poll()
    row = next((one for one in rows if one["queue"] == name), None)
    if row is None:
        raise QueueNotFoundError(f'there is no queue "{name}", or the page\'s role has no right on it', queue=name)

    def read(connection: Connection) -> dict[str, Any]:
        identified(site, connection)
        names = ("buckets", "passes", "sizes", "minutes")
        found = {part: figures.part(connection, f"web_{part}", name) for part in names}
        return {
            **found,
            "quarantined": figures.part(connection, "web_quarantined_keys", name, figures.QUARANTINED_KEYS),
            "workers": figures.workers(connection),
            "columns": columns_of(connection, name),
            "operable": figures.may_operate(connection, name),
        }

    found = site.database.run(read)
    buckets = found["buckets"].rows
    most = max((bucket["pending"] for bucket in buckets), default=0)
    return page(
        request,
        "queue.html",
        row={**row, "state": state_of(row)},
        charts=site.lines.charts(row, found["minutes"].rows),
        cells=[{**one, "level": charts.level(one["pending"], most)} for one in buckets[:MOST_BUCKETS]],
        more_buckets=max(0, len(buckets) - MOST_BUCKETS),
        failing=[one for one in buckets if one["failures"]],
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
        found: dict[str, Any] = {"row": row, "columns": columns, "updates": figures.Part(), "operable": False}
        if row is not None:
            found["updates"] = figures.quarantined_updates(connection, name, number, columns)
            found["operable"] = figures.may_operate(connection, name)
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
        rows, _ = site.history.poll()
        states = watched(rows, alarms_of(site, rows)[1])
    result, checking = site.checkup.result(states)
    return page(request, "doctor.html", result=result, checking=checking)


async def health(request: Request) -> Response:
    """Answer ``/healthz`` with 200. This needs neither the database nor a thread of the thread pool."""
    return Response("ok\n", media_type="text/plain")
