"""Kinds of connections that callers may pass to pgcombine.

At the end of a block without an error, psycopg commits the transaction, and SQLAlchemy rolls it back.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, contextmanager
from typing import Any

import psycopg
import sqlalchemy as sa
from psycopg.rows import dict_row
from sqlalchemy import orm
from sqlalchemy.ext import asyncio as sa_asyncio


def url(dsn: str, driver: str = "psycopg") -> str:
    return dsn.replace("postgresql://", f"postgresql+{driver}://", 1)


@contextmanager
def psycopg_connection(dsn: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(dsn) as connection:
        yield connection


@contextmanager
def psycopg_of_another_taste(dsn: str) -> Iterator[psycopg.Connection[Any]]:
    """A connection whose rows are dicts, and whose statements have parameters such as ``$1``."""
    with psycopg.connect(dsn, row_factory=dict_row, cursor_factory=psycopg.RawCursor) as connection:
        yield connection


@contextmanager
def engine(dsn: str, driver: str = "psycopg", **options: Any) -> Iterator[sa.Engine]:
    engine = sa.create_engine(url(dsn, driver), **options)
    try:
        yield engine
    finally:
        engine.dispose()


@contextmanager
def alchemy_connection(dsn: str, driver: str = "psycopg", **options: Any) -> Iterator[sa.Connection]:
    with engine(dsn, driver, **options) as opened, opened.connect() as connection:
        yield connection


@contextmanager
def alchemy_session(dsn: str) -> Iterator[orm.Session]:
    with engine(dsn) as opened, orm.Session(opened) as session:
        yield session


@contextmanager
def alchemy_scoped_session(dsn: str) -> Iterator[orm.scoped_session[orm.Session]]:
    with engine(dsn) as opened:
        sessions = orm.scoped_session(orm.sessionmaker(opened))
        try:
            yield sessions
        finally:
            sessions.remove()


SYNC = [psycopg_connection, psycopg_of_another_taste, alchemy_connection, alchemy_session, alchemy_scoped_session]
Opened = Callable[[str], AbstractContextManager[Any]]


@asynccontextmanager
async def async_psycopg(dsn: str) -> AsyncIterator[psycopg.AsyncConnection]:
    async with await psycopg.AsyncConnection.connect(dsn) as connection:
        yield connection


@asynccontextmanager
async def async_engine(dsn: str, driver: str = "psycopg") -> AsyncIterator[sa_asyncio.AsyncEngine]:
    engine = sa_asyncio.create_async_engine(url(dsn, driver))
    try:
        yield engine
    finally:
        await engine.dispose()


@asynccontextmanager
async def async_alchemy_connection(dsn: str, driver: str = "psycopg") -> AsyncIterator[sa_asyncio.AsyncConnection]:
    async with async_engine(dsn, driver) as engine, engine.connect() as connection:
        yield connection


@asynccontextmanager
async def async_alchemy_session(dsn: str, driver: str = "psycopg") -> AsyncIterator[sa_asyncio.AsyncSession]:
    async with async_engine(dsn, driver) as engine, sa_asyncio.AsyncSession(engine) as session:
        yield session


@asynccontextmanager
async def async_alchemy_scoped(dsn: str) -> AsyncIterator[sa_asyncio.async_scoped_session[sa_asyncio.AsyncSession]]:
    async with async_engine(dsn) as engine:
        sessions = sa_asyncio.async_scoped_session(sa_asyncio.async_sessionmaker(engine), asyncio.current_task)
        try:
            yield sessions
        finally:
            await sessions.remove()


@asynccontextmanager
async def asyncpg_connection(dsn: str) -> AsyncIterator[sa_asyncio.AsyncConnection]:
    async with async_alchemy_connection(dsn, "asyncpg") as connection:
        yield connection


@asynccontextmanager
async def asyncpg_session(dsn: str) -> AsyncIterator[sa_asyncio.AsyncSession]:
    async with async_alchemy_session(dsn, "asyncpg") as session:
        yield session


ASYNC = [
    *(async_psycopg, async_alchemy_connection, async_alchemy_session, async_alchemy_scoped),
    *(asyncpg_connection, asyncpg_session),
]
AsyncOpened = Callable[[str], AbstractAsyncContextManager[Any]]


@asynccontextmanager
async def caller_of(opened: Any, dsn: str) -> AsyncIterator[Any]:
    """Open a connection of any kind. :func:`done` awaits the results of its calls."""
    if opened in ASYNC:
        async with opened(dsn) as caller:
            yield caller
    else:
        with opened(dsn) as caller:
            yield caller


async def done(result: Any) -> Any:
    """Await the result of a call if it is awaitable."""
    return await result if inspect.isawaitable(result) else result


def run(main: Callable[[], Awaitable[None]]) -> None:
    async def whole() -> None:
        await main()

    asyncio.run(whole())
