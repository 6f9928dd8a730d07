"""What readers can do: sign in and out, run the doctor, and with ``--allow-actions`` change queues and exports.

The forms of the pages send POST requests. The guard (:mod:`pgcombine.web.guard`) refuses those of other sites. The
database checks the rights of the role with which ``pgcombine web`` connects.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from urllib.parse import parse_qsl, urlsplit

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from pgcombine.database.connect import Connection, one
from pgcombine.database.sqlfiles import query
from pgcombine.errors import NotQuarantinedError, translated
from pgcombine.web.guard import LARGEST, SESSION_SECONDS
from pgcombine.web.pages import page, site_of

ID = re.compile("[0-9]{1,18}")  # a number that PostgreSQL's bigint can hold

log = logging.getLogger("pgcombine.web")

Work = Callable[[Connection, Mapping[str, str]], str]


async def form_of(request: Request) -> dict[str, str]:
    """Return the fields of a form. Raises HTTPException unless the body is a valid form of at most LARGEST bytes."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise HTTPException(415, "The request has no form: the content type isn't application/x-www-form-urlencoded.")
    body = await request.body()
    if len(body) > LARGEST:
        raise HTTPException(413, f"The form has more than {LARGEST} bytes: shorten its text.")
    try:
        return dict(parse_qsl(body.decode("ascii"), max_num_fields=10))
    except ValueError:
        raise HTTPException(400, "The form isn't ASCII, or has more than 10 fields: use the page's form.") from None


async def own_form(request: Request) -> dict[str, str]:
    """Return the fields of a form. Raises HTTPException unless the form has the form key of this process."""
    fields = await form_of(request)
    if not site_of(request).keys.is_form(fields.get("form_key", "")):
        raise HTTPException(
            403, "The form has no valid key: it may be from an earlier run of pgcombine web. Reload its page."
        )
    return fields


async def _act(request: Request, what: str, target: str, work: Work) -> Response:
    """Run ``work`` in a transaction, and redirect to a page that shows the outcome ``work`` returns.

    The page is ``target``, or the overview if the form came from there.
    """
    site = site_of(request)
    fields = await own_form(request)
    if not site.actions:
        raise HTTPException(403, "Actions are switched off. Start pgcombine web with --allow-actions.")

    def acted() -> str:
        return site.database.run(lambda connection: work(connection, fields))

    outcome = await run_in_threadpool(acted)
    subject = " ".join(str(part) for part in request.path_params.values())
    log.info("web.action what=%s subject=%s key=%s outcome=%s", what, subject, fields.get("id", "-"), outcome)
    return RedirectResponse(f"{'/' if fields.get('back') == 'overview' else target}?done={outcome}", 303)


CALLS = {
    "pause": "select pgcombine.pause(%s)",
    "resume": "select pgcombine.resume(%s)",
    "pause_export": "select pgcombine.pause_export(%s, 'paused on the page')",
    "resume_export": "select pgcombine.resume_export(%s)",
}


async def call(request: Request, *, name: str) -> Response:
    """Pause or resume a queue or an export. ``name`` is a key of CALLS."""
    ((kind, subject),) = request.path_params.items()

    def work(connection: Connection, _: Mapping[str, str]) -> str:
        with translated(queue=subject if kind == "queue" else None):
            connection.execute(CALLS[name], (subject,))
        return "paused" if name.startswith("pause") else "resumed"

    return await _act(request, name, f"/queues/{subject}" if kind == "queue" else "/exports", work)


async def release(request: Request, *, drops: bool) -> Response:
    """Retry a queue's quarantined keys, or the one that the form names. With ``drops``, delete their updates."""
    name: str = request.path_params["queue"]

    def work(connection: Connection, fields: Mapping[str, str]) -> str:
        number = fields.get("id", "")
        known = ID.fullmatch(number) is not None
        if not known and fields.get("all") != "yes":
            raise HTTPException(400, "The form names no key: it needs the number of a key as id, or all=yes.")
        with translated(queue=name):
            if known:
                function = "drop_quarantined" if drops else "retry_quarantined"
                statement = query("web_release_key").replace("{function}", function)
                row = connection.execute(statement.encode(), (name, int(number))).fetchone()
                if row is None:
                    raise NotQuarantinedError("the key isn't quarantined any more: choose another one", queue=name)
                (updates,) = row
            elif drops:
                (updates,) = one(connection, "select pgcombine.drop_quarantined(%s)", name)
            else:
                (updates,) = one(connection, "select pgcombine.retry_quarantined(%s)", name)
        return f"{'dropped' if drops else 'retried'}&count={updates}"

    return await _act(request, "drop_quarantined" if drops else "retry_quarantined", f"/queues/{name}", work)


async def examine(request: Request) -> Response:
    """Start the doctor, unless it is running or has ended a few seconds ago, and redirect to its page."""
    await own_form(request)
    site_of(request).checkup.result(again=True)
    return RedirectResponse("/doctor", 303)


async def sign_in(request: Request) -> Response:
    """Show the sign-in form. If no token is needed, redirect instead.

    For a POST, check the token. If it is right, set the cookie and redirect, else show the form again.
    """
    keys = site_of(request).keys
    if not keys.needed:
        return RedirectResponse("/", 303)
    if request.method != "POST":
        return page(request, "login.html", names={}, next=request.query_params.get("next", "/"), wrong=False)
    fields = await form_of(request)
    wanted = fields.get("next", "/")
    if not keys.opens(fields.get("token", "").strip()):
        log.warning("web.sign_in_refused address=%s", request.client.host if request.client else "?")
        return page(request, "login.html", 403, names={}, next=wanted, wrong=True)
    own = wanted.startswith("/") and not wanted.startswith("//") and "\\" not in wanted
    answer = RedirectResponse(wanted if own else "/", 303)
    # Origin has the browser's scheme, even if a proxy terminates TLS
    secure = urlsplit(request.headers.get("origin", "")).scheme == "https"
    answer.set_cookie(
        keys.cookie, keys.session(), max_age=SESSION_SECONDS, httponly=True, samesite="lax", secure=secure
    )
    return answer


async def sign_out(request: Request) -> Response:
    """Delete the browser's cookie."""
    answer = RedirectResponse("/login", 303)
    answer.delete_cookie(site_of(request).keys.cookie, httponly=True, samesite="lax")
    return answer
