"""The pages: each reads in one short transaction and fills in a template."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from pgcombine.database.connect import Connection
from pgcombine.errors import QueueNotFound
from pgcombine.web import charts, figures
from pgcombine.web.checkup import Checkup
from pgcombine.web.database import Database
from pgcombine.web.guard import Keys
from pgcombine.web.history import EVERY, History
from pgcombine.web.texts import FILTERS

REFRESH = 5  # seconds between two looks of an open page
BEHIND = 60.0  # seconds of lag from which a queue counts as behind
OLD_SNAPSHOT = 60.0  # seconds
MOST_BUCKETS = 512  # cells of a heat map
REFUSED = 50
HOUR = 3600.0
GAP = 3 * EVERY
DONE = {  # what an action did, shown on the page after it
    "paused": "Paused. Enqueues go on; no pass runs until it is resumed.",
    "resumed": "Resumed.",
    "retried": "Pending again: {count} held updates.",
    "dropped": "Dropped for ever: {count} held updates.",
}


@dataclass
class Site:
    """What all pages share: ``actions`` says whether readers may act, ``version`` is the program's."""

    database: Database
    history: History
    checkup: Checkup
    keys: Keys
    actions: bool
    version: str
    names: Mapping[str, str] = field(default_factory=dict)


@cache
def templates() -> Environment:
    """Return the templates. All of them escape what they are given."""
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
    """Return what all pages share."""
    site: Site = request.app.state.site
    return site


def page(request: Request, template: str, status: int = 200, **context: Any) -> HTMLResponse:
    """Return a page."""
    site = site_of(request)
    done = DONE.get(request.query_params.get("done", ""), "")
    count = request.query_params.get("count", "")
    text = (
        templates()
        .get_template(template)
        .render(
            site=site,
            names=site.names,
            path=request.url.path,
            form_key=site.keys.form,
            refresh=REFRESH,
            done=done.format(count=int(count) if count.isascii() and count.isdigit() and len(count) < 19 else "the"),
            **context,
        )
    )
    return HTMLResponse(text, status)


def identified(site: Site, connection: Connection) -> None:
    """Note the names of database and role for all pages."""
    if not site.names:
        site.names = figures.identity(connection)


def state_of(row: Mapping[str, Any]) -> str:
    """Return the state of a queue: failing, quarantine, paused, behind, unknown or well."""
    if row["failing_buckets"]:
        return "failing"
    if row["quarantined_keys"]:
        return "quarantine"
    if row["paused"]:
        return "paused"
    if row["lag_seconds"] > BEHIND:
        return "behind"
    return "unknown" if row["pending_at"] is None else "well"


STATES = ("failing", "quarantine", "behind", "unknown", "paused", "well")  # worst first


def overview(request: Request) -> Response:
    """All queues, and what is wrong."""
    site = site_of(request)
    rows, at = site.history.look()
    minutes = site.history.minutes()

    def read(connection: Connection) -> dict[str, figures.Part]:
        identified(site, connection)
        return {name: figures.part(connection, f"web_{name}") for name in ("workers", "snapshot", "exports")}

    found = site.database.run(read)
    wanted = request.query_params.get("find", "")[:40]
    now = time.time()
    queues = [
        {
            **row,
            "state": state_of(row),
            "lag_line": charts.spark(
                [(p.at, p.lag) for p in site.history.points(row["queue"])], now - HOUR, now, gap=GAP
            ),
            "rate_line": charts.spark(_rates(minutes.get(row["queue"], ())), now - HOUR, now, gap=90),
        }
        for row in rows
        if wanted in row["queue"]
    ]
    queues.sort(key=lambda row: (STATES.index(row["state"]), row["queue"]))
    result, checking = site.checkup.result()
    old = [one for one in found["snapshot"].rows if (one["age_seconds"] or 0) > OLD_SNAPSHOT]
    return page(
        request,
        "overview.html",
        queues=queues,
        all=rows,
        find=wanted,
        at=at,
        worst=max(rows, key=lambda row: float(row["lag_seconds"]), default=None),
        troubled=sum(state_of(row) in ("failing", "quarantine", "behind") for row in rows),
        result=result,
        checking=checking,
        old=old,
        down=[one for one in found["exports"].rows if one["state"] in ("down", "suspect")],
        **found,
    )


def _rates(minutes: Any, name: str = "updates") -> list[tuple[float, float]]:
    """Return updates a second of the minutes with passes, each at its middle. Minutes without passes between are 0."""
    points: list[tuple[float, float]] = []
    for row in minutes:
        at = row["minute"].timestamp() + 30
        while points and at - points[-1][0] > 90:
            points.append((points[-1][0] + 60, 0.0))
        points.append((at, float(row[name]) / 60))
    return points


def queue(request: Request) -> Response:
    """One queue."""
    site = site_of(request)
    name: str = request.path_params["queue"]
    rows, at = site.history.look()
    row = next((one for one in rows if one["queue"] == name), None)
    if row is None:
        raise QueueNotFound(f'there is no queue "{name}", or the page\'s role has no right on it', queue=name)

    def read(connection: Connection) -> dict[str, Any]:
        identified(site, connection)
        found = {one: figures.part(connection, f"web_{one}", name) for one in ("buckets", "passes", "sizes")}
        held = figures.part(connection, "web_held_keys", name, figures.HELD_KEYS)
        return {
            **found,
            "held": held,
            "columns": figures.columns(connection, name),
            "operable": figures.may_operate(connection, name),
        }

    found = site.database.run(read)
    now = time.time()
    points = site.history.points(name)
    minutes = site.history.minutes().get(name, ())
    buckets = found["buckets"].rows
    most = max((bucket["pending"] for bucket in buckets), default=0)
    return page(
        request,
        "queue.html",
        row={**row, "state": state_of(row)},
        at=at,
        lag=charts.chart([(p.at, p.lag) for p in points], now - HOUR, now, gap=GAP),
        pending=charts.chart([(p.at, p.pending) for p in points], now - HOUR, now, gap=GAP),
        rate=charts.chart(_rates(minutes), now - 3 * HOUR, now, gap=90),
        changes=charts.chart(_rates(minutes, "changes"), now - 3 * HOUR, now, gap=90),
        cells=[{**one, "level": charts.level(one["pending"], most)} for one in buckets[:MOST_BUCKETS]],
        more_buckets=max(0, len(buckets) - MOST_BUCKETS),
        failing=[one for one in buckets if one["failures"]],
        **found,
    )


def greatest(request: Request) -> Response:
    """The keys of a queue with the greatest values."""
    site = site_of(request)
    name: str = request.path_params["queue"]
    by = request.query_params.get("by")

    def read(connection: Connection) -> tuple[figures.Part, list[dict[str, Any]]]:
        identified(site, connection)
        columns = figures.columns(connection, name)
        if not columns:
            raise QueueNotFound(f'there is no queue "{name}"', queue=name)
        return figures.greatest(connection, name, by), columns

    part, columns = site.database.run(read)
    values = [column["name"] for column in columns if column["role"] == "value"]
    return page(
        request,
        "keys.html",
        queue=name,
        part=part,
        columns=columns,
        values=values,
        by=by if by in values else values[0],
    )


def held(request: Request) -> Response:
    """A quarantined key with its held updates."""
    site = site_of(request)
    name: str = request.path_params["queue"]
    number: int = request.path_params["number"]

    def read(connection: Connection) -> dict[str, Any]:
        identified(site, connection)
        found = figures.held_key(connection, name, number)
        return {
            "row": found,
            "updates": figures.held_updates(connection, name, number) if found else figures.Part(),
            "operable": bool(found) and figures.may_operate(connection, name),
        }

    found = site.database.run(read)
    return page(request, "held.html", 200 if found["row"] else 404, queue=name, **found)


def _listed(request: Request, template: str, *parts: str, **context: Any) -> Response:
    """Return a page of tables."""
    site = site_of(request)

    def read(connection: Connection) -> dict[str, figures.Part]:
        identified(site, connection)
        found = {name: figures.part(connection, f"web_{name}") for name in parts}
        return found | {"refused": figures.part(connection, "web_refused", REFUSED)} if "exports" in parts else found

    return page(request, template, **site.database.run(read), **context)


def exports(request: Request) -> Response:
    """The exports and their destinations."""
    return _listed(request, "exports.html", "exports", "destinations")


def servers(request: Request) -> Response:
    """The other servers, and what waits for them."""
    return _listed(request, "servers.html", "hints", "destinations")


def loads(request: Request) -> Response:
    """The loads from Spark."""
    return _listed(request, "loads.html", "loads")


def doctor(request: Request) -> Response:
    """The doctor's findings."""
    result, checking = site_of(request).checkup.result()
    return page(request, "doctor.html", result=result, checking=checking)


def health(request: Request) -> Response:
    """``/healthz``: 200 while the process answers, also while the database is away."""
    return Response("ok\n", media_type="text/plain")
