"""A role without rights calls each method of the public classes that takes a connection.

Each error is a NotGrantedError that names the call of grant_right, or the schema's owner. After the call of grant_right
the method works, or names another right.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import psycopg
from support.roles import Roles
from support.servers import embedded_only

from pgcombine import CombineQueue, ExportQueue, Feed, Rollup
from pgcombine.errors import ExportNotFoundError, NotGrantedError, WaitTimeoutError

WC = CombineQueue("wc", key=["word text"], value=["n bigint sum"])
EMPTY = CombineQueue("other", key=["word text"], value=["n bigint sum"])
NEW = CombineQueue("new", key=["word text"], value=["n bigint sum"])
FEED, EXPORT = Feed("changes", queue="wc"), ExportQueue("words", queue="wc")
ROLLUP = Rollup("docs", source="app.doc", key=["word"], value=["count(*) as n"])
CALLS: dict[str, Callable[[Any], Any]] = {
    "CombineQueue.create": NEW.create,
    "CombineQueue.create_tier": lambda conn: CombineQueue("new", key=["word"]).create_tier(conn, "wc"),
    "CombineQueue.drop": WC.drop,
    "CombineQueue.enqueue": lambda conn: WC.enqueue(conn, [("a", 1)]),
    "CombineQueue.enqueue with a token": lambda conn: WC.enqueue(conn, [("a", 1)], token="t"),
    "CombineQueue.contribute": lambda conn: WC.contribute(conn, "s", [("a", 1)]),
    "CombineQueue.get": lambda conn: WC.get(conn, ["a"]),
    "CombineQueue.values": lambda conn: list(WC.values(conn)),
    "CombineQueue.backlog": WC.backlog,
    "CombineQueue.pause": WC.pause,
    "CombineQueue.resume": WC.resume,
    "CombineQueue.wait": lambda conn: WC.wait(conn, timeout=0.1),
    "CombineQueue.initialize": lambda conn: EMPTY.initialize(conn, [("a", 1)]),
    "CombineQueue.rebucket": lambda conn: WC.rebucket(conn, 8),
    "CombineQueue.set_expiry": lambda conn: WC.set_expiry(conn, "n > 9"),
    "CombineQueue.verify": WC.verify,
    "Feed.create": Feed("new", queue="wc").create,
    "Feed.drop": FEED.drop,
    "Feed.offset": FEED.offset,
    "Feed.commit": lambda conn: FEED.commit(conn, "c", {}),
    "Feed.committed": lambda conn: FEED.committed(conn, "c"),
    "Feed.snapshot": lambda conn: list(FEED.snapshot(conn)[1]),
    "Feed.read": lambda conn: list(FEED.read(conn, after={})),
    "ExportQueue.create": ExportQueue("new", queue="wc").create,
    "ExportQueue.drop": EXPORT.drop,
    "ExportQueue.pause": EXPORT.pause,
    "ExportQueue.resume": EXPORT.resume,
    "ExportQueue.backlog": EXPORT.backlog,
    "ExportQueue.quarantined": EXPORT.quarantined,
    "ExportQueue.retry_quarantined": EXPORT.retry_quarantined,
    "ExportQueue.drop_quarantined": EXPORT.drop_quarantined,
    "Rollup.create": Rollup("new", source="app.doc", key=["word"], value=["count(*) as n"]).create,
    "Rollup.backfill": lambda conn: list(ROLLUP.backfill(conn)),
    "Rollup.verify": ROLLUP.verify,
    "Rollup.drop": ROLLUP.drop,
}


def test_each_method_is_called() -> None:
    methods = {
        f"{kind.__name__}.{name}"
        for kind in (CombineQueue, ExportQueue, Feed, Rollup)
        for name, method in vars(kind).items()
        if not name.startswith("_") and callable(method) and "connection" in inspect.signature(method).parameters
    }
    assert methods == {call.partition(" ")[0] for call in CALLS}


@embedded_only
def test_errors_name_the_call_that_grants_the_right(conn: psycopg.Connection, dsn: str) -> None:
    WC.create(conn)
    EMPTY.create(conn)
    conn.execute("create schema app; grant usage on schema app to public; create table app.doc (word text)")
    ROLLUP.create(conn)
    list(ROLLUP.backfill(conn))
    FEED.create(conn)
    EXPORT.create(conn)
    wrong = {}
    with Roles(conn, dsn) as roles:
        for name, call in CALLS.items():
            role = roles.login()
            granted: list[str] = []
            while True:
                try:
                    call(role)
                    break
                except NotGrantedError as error:
                    hint = error.hint or ""
                    if hint.endswith('" can do this') and not granted:
                        break
                    if hint in granted or not hint.startswith("select pgcombine.grant_right("):
                        wrong[name] = f"{error} after {granted}"
                        break
                    granted.append(hint)
                    conn.execute(hint.encode())
                except (ExportNotFoundError, WaitTimeoutError):  # a role sees only exports on which it has a right
                    break
                except Exception as error:
                    wrong[name] = f"{type(error).__name__}: {error} after {granted}"
                    break
    assert not wrong, "\n".join(f"{name}: {what}" for name, what in wrong.items())
