"""The checks of every request, and the headers of every answer.

- The Host header must have an IP address, ``localhost`` or a name of ``--allow-host``. This refuses DNS rebinding, in
  which another site's name resolves to this machine.
- The method must be GET, HEAD or POST.
- Other sites can link to the pages, but can't embed them, load parts of them, or post to them from a browser.
- If the server has a token, a request needs the token or a cookie, except for the paths in OPEN. A browser gets the
  cookie by signing in. A program sends ``Authorization: Bearer …``, and can only read.
- The number of requests that are answered at the same time is limited. ``/healthz`` is answered beyond the limit.

A request that fails a check gets a line of text. A browser that opens a page without the cookie is sent to the sign-in
page.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections import Counter
from collections.abc import Collection
from ipaddress import ip_address
from urllib.parse import quote, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

SESSION_SECONDS = 12 * 3600
MOST_AT_ONCE = 100  # greatest number of requests that are answered at the same time
MOST_OF_CLIENT = 50  # greatest number of these that one client may have
LARGEST = 4096  # bytes of a form; a longer one is refused
OPEN = ("/login", "/healthz", "/static/page.css", "/static/page.js", "/static/icon.svg")
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # no-referrer would make a form's Origin null
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


class Keys:
    """The secrets of this process: the readers' token, if there is one, the secret of its cookies, and the forms' key.

    The forms that search, sign in or sign out don't have the key.
    """

    def __init__(self, token: str | None = None) -> None:
        self._token = token
        self._secret = secrets.token_bytes(32)
        self.form = secrets.token_urlsafe(32)
        # a random name, since all ports of a host share their cookies
        self.cookie = f"pgcombine_{secrets.token_hex(4)}"

    @property
    def needed(self) -> bool:
        return self._token is not None

    def opens(self, token: str) -> bool:
        return self._token is not None and hmac.compare_digest(self._token.encode(), token.encode())

    def session(self) -> str:
        """Return the cookie's value for browsers that have signed in. It is valid until this process ends."""
        return hmac.new(self._secret, (self._token or "").encode(), hashlib.sha256).hexdigest()

    def knows(self, headers: Headers, method: str) -> bool:
        """Whether no token is needed, or the request has the cookie or, for GET and HEAD, the token."""
        if self._token is None:
            return True
        kind, _, given = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer" and method in ("GET", "HEAD"):
            return self.opens(given.strip())
        cookie = cookie_parser(headers.get("cookie", "")).get(self.cookie, "")  # ignores malformed cookies
        return hmac.compare_digest(cookie.encode(), self.session().encode())

    def is_form(self, given: str) -> bool:
        """Whether ``given`` is the forms' key."""
        return hmac.compare_digest(given.encode(), self.form.encode())


class Guard:
    """The ASGI middleware. ``hosts`` are the host names that requests may use besides ``localhost`` and addresses."""

    def __init__(self, app: ASGIApp, *, keys: Keys, hosts: Collection[str] = ()) -> None:
        self._app = app
        self._keys = keys
        self._hosts = {"localhost", *(host.lower() for host in hosts)}
        self._clients: Counter[str] = Counter()  # requests in progress, by client address

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            return
        path: str = scope["path"]

        async def sealed(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers["Cache-Control"] = "no-cache" if path.startswith("/static/") else "no-store"
            await send(message)

        refused = self._refused(scope["method"], path, Headers(scope=scope))
        if refused is None and scope["method"] == "POST":
            form = await _form(receive)  # read before counting: slow senders must not use up the limits
            if form is None:
                return
            receive = _again(form, receive)
        client: str = (scope.get("client") or ("",))[0]
        if refused is None and path != "/healthz" and self._is_busy(client):
            refused = PlainTextResponse("Too many requests at once. Try again.\n", 503, {"Retry-After": "5"})
        self._clients[client] += 1
        try:
            await (refused or self._app)(scope, receive, sealed)
        finally:
            self._clients[client] -= 1
            if not self._clients[client]:
                del self._clients[client]

    def _is_busy(self, client: str) -> bool:
        return self._clients[client] >= MOST_OF_CLIENT or self._clients.total() >= MOST_AT_ONCE

    def _refused(self, method: str, path: str, headers: Headers) -> Response | None:
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self._is_mine(hosts[0]):
            return PlainTextResponse(
                "This host isn't known here. Use localhost or an address, or start the page with --allow-host.\n", 421
            )
        if method not in ("GET", "HEAD", "POST"):
            return PlainTextResponse("Only GET and POST.\n", 405, {"Allow": "GET, HEAD, POST"})
        if foreign(method, headers):
            return PlainTextResponse("A request from another site isn't answered.\n", 403)
        if path in OPEN or self._keys.knows(headers, method):
            return None
        if method == "POST" or "authorization" in headers:
            return PlainTextResponse("Sign in first.\n", 401, {"WWW-Authenticate": "Bearer"})
        return RedirectResponse(f"/login?next={quote(path)}", 303)

    def _is_mine(self, host: str) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        if name in self._hosts:
            return True
        try:
            ip_address(name)
        except ValueError:
            return False
        return True


async def _form(receive: Receive) -> bytes | None:
    """Return a request's body, or None if the client has disconnected."""
    body, more = b"", True
    while more and len(body) <= LARGEST:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        more = message.get("more_body", False)
    return body


def _again(body: bytes, receive: Receive) -> Receive:
    """Return an ASGI receive function whose first call returns ``body``. Later calls call ``receive``."""
    left = [body]

    async def received() -> Message:
        return {"type": "http.request", "body": left.pop()} if left else await receive()

    return received


def foreign(method: str, headers: Headers) -> bool:
    """Whether another site's page may have sent the request. A link that a reader followed doesn't count.

    Browsers send Origin or Sec-Fetch-Site with a POST, so a POST with neither header counts as foreign.
    """
    site = headers.get("sec-fetch-site")
    if method == "POST":
        origin = headers.get("origin")
        if site is None and origin is None:
            return True
        return site not in (None, "same-origin") or (origin is not None and not _same(origin, headers["host"]))
    link = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
    return site not in (None, "same-origin", "none") and not link


def _same(origin: str, host: str) -> bool:
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and parts.netloc.lower() == host.lower()
