"""The application: routes, errors as pages, and the guard around all."""

from __future__ import annotations

import logging
from collections.abc import Collection
from functools import partial
from importlib import resources

import psycopg
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from pgcombine.errors import (
    ConnectError,
    DestinationNotFound,
    ExportNotFound,
    NotQuarantined,
    PgCombineError,
    QueueNotFound,
    SchemaError,
    first_line,
    translate,
)
from pgcombine.web import actions, pages
from pgcombine.web.guard import Guard
from pgcombine.web.pages import Site, page

log = logging.getLogger("pgcombine.web")

QUEUE = "/queues/{queue}"


def application(site: Site, hosts: Collection[str] = ()) -> Starlette:
    """Return the application. ``hosts`` are names for it beside addresses and ``localhost``."""
    post = ["POST"]
    static = str(resources.files("pgcombine.web") / "static")
    app = Starlette(
        routes=[
            Route("/", pages.overview),
            Route("/healthz", pages.health),
            Route("/exports", pages.exports),
            Route("/servers", pages.servers),
            Route("/loads", pages.loads),
            Route("/doctor", pages.doctor, methods=["GET"]),
            Route("/doctor", actions.examine, methods=post),
            Route("/login", actions.sign_in, methods=["GET", "POST"]),
            Route("/logout", actions.sign_out, methods=post),
            Route(QUEUE, pages.queue),
            Route(f"{QUEUE}/keys", pages.greatest),
            Route(f"{QUEUE}/quarantine/{{number:int}}", pages.held),
            Route(f"{QUEUE}/pause", actions.pause, methods=post),
            Route(f"{QUEUE}/resume", actions.resume, methods=post),
            *(
                Route(f"{QUEUE}/quarantine/{verb}", partial(actions.release, drops=verb == "drop"), methods=post)
                for verb in ("retry", "drop")
            ),
            *(
                Route(
                    f"/exports/{{export}}/{verb}", partial(actions.toggle_export, pauses=verb == "pause"), methods=post
                )
                for verb in ("pause", "resume")
            ),
            Mount("/static", StaticFiles(directory=static)),
        ],
        middleware=[
            Middleware(Guard, keys=site.keys, hosts=hosts),
            Middleware(GZipMiddleware, minimum_size=2000, compresslevel=4),
        ],
        exception_handlers={
            HTTPException: _http_error,
            PgCombineError: _own_error,
            psycopg.Error: _database_error,
            Exception: _defect,
        },
    )
    app.state.site = site
    return app


def trouble(request: Request, status: int, title: str, text: str, advice: str = "") -> Response:
    """Return a page that says what is wrong, and what to do."""
    return page(request, "trouble.html", status, title=title, text=text, advice=advice)


def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    title = {404: "There is no such page", 405: "That can't be asked of this page"}.get(error.status_code, "Not done")
    return trouble(request, error.status_code, title, "" if error.status_code in (404, 405) else error.detail)


def _own_error(request: Request, error: Exception) -> Response:
    text, _, advice = str(error).rpartition(" (") if str(error).endswith(")") else (str(error), "", "")
    advice = advice.removesuffix(")")
    if isinstance(error, ConnectError):
        return trouble(request, 503, "The database doesn't answer", text or str(error), advice)
    if isinstance(error, SchemaError):
        return trouble(request, 503, "The database has another schema", str(error))
    if isinstance(error, (QueueNotFound, ExportNotFound, DestinationNotFound, NotQuarantined)):
        return trouble(request, 404, "It isn't there", str(error))
    return trouble(request, 409, "Not done", str(error))


def _database_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, psycopg.Error)
    own = translate(error)
    if own is not None:
        return _own_error(request, own)
    if isinstance(error, psycopg.errors.InsufficientPrivilege):
        hint = error.diag.message_hint or "grant the role what it lacks, or start the page as another role"
        return trouble(request, 403, "The page's role may not do that", first_line(error), hint)
    if isinstance(error, psycopg.errors.QueryCanceled):
        return trouble(request, 503, "That took too long", "The database was busy for too long and was left alone.")
    if isinstance(error, psycopg.errors.LockNotAvailable):
        return trouble(request, 503, "Another session has it locked", first_line(error))
    if isinstance(error, psycopg.OperationalError):
        return trouble(request, 503, "The database doesn't answer", first_line(error))
    log.exception("web.database_error path=%s", request.url.path)
    return trouble(request, 500, "The database refused", first_line(error))


def _defect(request: Request, error: Exception) -> Response:
    """The traceback goes to the log: Starlette raises the error again after the answer."""
    return trouble(request, 500, "This is a defect of the page", "The log of pgcombine web has the details.")
