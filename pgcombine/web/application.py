"""The web application: its routes, its pages for errors, and the guard around it."""

from __future__ import annotations

import logging
from collections.abc import Collection
from functools import partial
from importlib import resources

import psycopg
from starlette.applications import Starlette
from starlette.convertors import IntegerConvertor, StringConvertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from pgcombine.errors import (
    ConnectError,
    DestinationNotFoundError,
    ExportNotFoundError,
    FeedNotFoundError,
    NotGrantedError,
    NotQuarantinedError,
    OffsetTooOldError,
    PgCombineError,
    QueueNotFoundError,
    SchemaError,
    first_line,
    translate,
)
from pgcombine.web import actions, feeds, pages
from pgcombine.web.guard import Guard
from pgcombine.web.pages import Site, page

QUEUE = "/queues/{queue:name}"
QUARANTINE = f"{QUEUE}/quarantine"
EXPORT = "/exports/{export:name}"
_MISSING = (QueueNotFoundError, ExportNotFoundError, FeedNotFoundError, DestinationNotFoundError, NotQuarantinedError)
TITLES = {404: "There is no such page", 405: "This page doesn't support that method"}

log = logging.getLogger("pgcombine.web")


class _Name(StringConvertor):
    """A part of a path that can be the name of a queue, an export or a feed."""

    regex = "[a-z_][a-z0-9_]{0,62}"


class _Id(IntegerConvertor):
    """A number that PostgreSQL's bigint can hold."""

    regex = "[0-9]{1,18}"


register_url_convertor("name", _Name())
register_url_convertor("id", _Id())


def application(site: Site, hosts: Collection[str] = ()) -> Guard:
    """Return the application. ``hosts`` are the names that requests may use besides ``localhost`` and addresses."""
    post = ["POST"]
    app = Starlette(
        routes=[
            Route("/", pages.overview),
            Route("/healthz", pages.health),
            Route("/exports", pages.exports),
            Route("/servers", pages.servers),
            Route("/feeds/{feed:name}", feeds.feed),
            Route("/loads", pages.loads),
            Route("/doctor", pages.doctor),
            Route("/doctor", actions.examine, methods=post),
            Route("/login", actions.sign_in, methods=["GET", "POST"]),
            Route("/logout", actions.sign_out, methods=post),
            Route(QUEUE, pages.queue),
            Route(f"{QUEUE}/keys", pages.greatest),
            Route(f"{QUEUE}/pause", partial(actions.call, name="pause"), methods=post),
            Route(f"{QUEUE}/resume", partial(actions.call, name="resume"), methods=post),
            Route(f"{QUARANTINE}/{{number:id}}", pages.quarantined_key),
            Route(f"{QUARANTINE}/retry", partial(actions.release, drops=False), methods=post),
            Route(f"{QUARANTINE}/drop", partial(actions.release, drops=True), methods=post),
            Route(f"{EXPORT}/pause", partial(actions.call, name="pause_export"), methods=post),
            Route(f"{EXPORT}/resume", partial(actions.call, name="resume_export"), methods=post),
            Mount("/static", StaticFiles(directory=str(resources.files("pgcombine.web") / "static"))),
        ],
        # A page that repeats a text of the request must not contain the forms' key: with many such texts, an attacker
        # could guess the key from the lengths of the compressed answers.
        middleware=[Middleware(GZipMiddleware, minimum_size=2000, compresslevel=4)],
        exception_handlers={
            HTTPException: _http_error,
            PgCombineError: _mapped_error,
            psycopg.Error: _database_error,
            Exception: _defect,
        },
    )
    app.state.site = site
    return Guard(app, keys=site.keys, hosts=hosts)


def trouble(request: Request, status: int, title: str, text: str, advice: str = "") -> Response:
    """Return a page that says what is wrong, and what to do. With status 503, the page for a GET reloads itself."""
    again = status == 503 and request.method == "GET"
    return page(request, "trouble.html", status, title=title, text=text, advice=advice, again=again)


def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    title = TITLES.get(error.status_code)
    return trouble(request, error.status_code, title or "Not done", "" if title else error.detail)


def _mapped_error(request: Request, error: Exception) -> Response:
    text, advice = str(error), ""
    if text.endswith(")") and " (" in text:
        text, _, advice = text.removesuffix(")").rpartition(" (")
    if isinstance(error, ConnectError):
        return trouble(request, 503, "The database doesn't answer", text, advice)
    if isinstance(error, SchemaError):
        return trouble(request, 503, "The database's schema has another version", str(error))
    if isinstance(error, _MISSING):
        return trouble(request, 404, "Not found", str(error))
    if isinstance(error, OffsetTooOldError):
        return trouble(request, 410, "Read it all again", text, advice)
    if isinstance(error, NotGrantedError):
        return trouble(request, 403, "The page's role isn't allowed to do that", text, advice)
    return trouble(request, 409, "Not done", text, advice)


def _database_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, psycopg.Error)
    mapped = translate(error)
    if mapped is not None:
        return _mapped_error(request, mapped)
    reason = first_line(error)
    if isinstance(error, psycopg.errors.InsufficientPrivilege):
        return trouble(request, 403, "The page's role isn't allowed to do that", reason, error.diag.message_hint or "")
    if isinstance(error, psycopg.errors.QueryCanceled):
        return trouble(request, 503, "That took too long", "The database is busy, so the statement was cancelled.")
    if isinstance(error, psycopg.errors.LockNotAvailable):
        return trouble(request, 503, "Another session has locked a table", reason)
    if isinstance(error, psycopg.OperationalError):
        return trouble(request, 503, "The database doesn't answer", reason)
    log.error("web.database_error path=%s", request.url.path, exc_info=error)
    return trouble(request, 500, "The database reports an error", reason)


def _defect(request: Request, error: Exception) -> Response:
    """Answer after an unexpected error. Starlette raises the error again after the answer, and uvicorn logs it."""
    return trouble(request, 500, "Internal error of pgcombine web", "The log has the details.")
