"""The options of ``format("pgcombine")``, parsed and checked. A wrong option raises :class:`ConfigError`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from uuid import UUID

from pgcombine.config import given_dsn
from pgcombine.errors import ConfigError

_BOTH = ("queue", "dsn")
_READING = ("columns", "where", "feed", "startingOffsets", "endingOffsets", "maxChangesPerTrigger", "consumer")
_OF_FEEDS = _READING[3:]
_WRITING = ("runId", "preaggregate", "front", "source")
_INTERNAL = {"load"}  # set by staged()
_OF_STREAMS = {"checkpointlocation", "queryname"}  # Spark's own options, which it passes to the format, too


@dataclass(frozen=True)
class Options:
    """The parsed options.

    ``columns`` and ``where`` restrict reading. If ``columns`` is empty, all columns are read. If ``where`` is empty,
    all rows are read. With ``feed``, changes are read, and ``queue`` is empty. ``start`` and ``end`` are JSON texts of
    offsets, or "latest". ``start`` may also be "earliest", or empty for the reader's default. ``most`` is the option
    ``maxChangesPerTrigger``. With ``load``, the job writes the rows of this load, and another session applies them.
    ``front`` says whether ``queue`` is a front, whose shards are on other servers. ``source`` is the source whose
    contribution is written. ``overwrite`` isn't an option: it says whether the frame replaces all that was written.
    """

    queue: str
    dsn: str = field(repr=False)
    run_id: str | None = None
    load: UUID | None = None
    preaggregate: bool = False
    front: bool = False
    source: str | None = None
    overwrite: bool = False
    columns: tuple[str, ...] = ()
    where: str = ""
    feed: str = ""
    start: str = ""
    end: str = "latest"
    most: int | None = None
    consumer: str | None = None

    @classmethod
    def of(cls, given: Mapping[str, str], *, reading: bool = False) -> Options:
        """Parse the options ``given``. Names are accepted in any case, with or without ``_``.

        Without the option ``dsn`` the environment names the database. ``reading`` says whether the options are for
        reading or for writing. Raises ConfigError for a wrong value, and for an option that is missing, unknown or not
        allowed here.
        """
        options = {plain(name): value for name, value in given.items()}
        for name in given:
            _check_name(name, reading=reading)
        _check_subject(options, reading=reading)
        run_id = options.get("runid")
        if run_id is not None and not run_id:
            raise ConfigError('the option "runId" is empty: give a text that names the run, such as a date')
        front = truth("front", options.get("front", "false"))
        if front and "load" in options:
            raise ConfigError('the option "front" is only for df.write and df.writeStream: leave it out')
        source = options.get("source")
        if source is not None:
            refuse_source(source, run_id=run_id, front=front)
        return cls(
            queue=options.get("queue", ""),
            dsn=chosen_dsn(options.get("dsn")),
            run_id=run_id,
            load=UUID(options["load"]) if "load" in options else None,
            preaggregate=truth("preaggregate", options.get("preaggregate", "false")),
            front=front,
            source=source,
            columns=tuple(name.strip() for name in options.get("columns", "").split(",") if name.strip()),
            where=options.get("where", ""),
            feed=options.get("feed", ""),
            start=_offset("startingOffsets", options.get("startingoffsets", ""), "earliest", "latest"),
            end=_offset("endingOffsets", options.get("endingoffsets") or "latest", "latest"),
            most=_count("maxChangesPerTrigger", options.get("maxchangespertrigger")),
            consumer=options.get("consumer"),
        )


def chosen_dsn(dsn: str | None) -> str:
    """Return the given connection string, else the environment's. Raises ConfigError if there is neither."""
    chosen = given_dsn(dsn)
    if chosen is None:
        raise ConfigError(
            'Spark needs the option "dsn", or PGCOMBINE_DSN in the environment that its driver was started in'
        )
    return chosen


def plain(name: str) -> str:
    """Return an option's name in the form for comparisons: run_id and runId become runid."""
    return name.lower().replace("_", "")


def refuse_source(source: str, *, run_id: str | None, front: bool = False) -> None:
    """Raise ConfigError for a source that is empty, or is given together with an option that excludes it."""
    if not source:
        raise ConfigError('the option "source" is empty: give a text that names what is replaced, such as a date')
    if run_id is not None:
        raise ConfigError('the options "source" and "runId" exclude each other: a run replaces what the last one wrote')
    if front:
        raise ConfigError('the options "source" and "front" exclude each other: a front has no contributions')


def truth(name: str, value: object) -> bool:
    """Return an option's value as a bool. Raises ConfigError if it is neither "true" nor "false"."""
    if str(value).lower() not in {"true", "false"}:
        raise ConfigError(f'the option "{name}" can\'t be {value!r}: give "true" or "false"')
    return str(value).lower() == "true"


def _check_subject(options: Mapping[str, str], *, reading: bool) -> None:
    if not options.get("queue") and not options.get("feed"):
        other = ' or "feed"' if reading else ""
        raise ConfigError(f'format("pgcombine") needs the option "queue"{other}: .option("queue", …)')
    if options.get("queue") and options.get("feed"):
        raise ConfigError('the options "queue" and "feed" exclude each other: give one of them')
    for name in _OF_FEEDS:
        if plain(name) in options and not options.get("feed"):
            raise ConfigError(f'the option "{name}" is only for feeds: leave it out, or give "feed"')


def _offset(name: str, value: str, *words: str) -> str:
    if not value or value.lower() in words:
        return value.lower()
    try:
        if isinstance(json.loads(value), dict):
            return value
    except ValueError:
        pass
    raise ConfigError(f'the option "{name}" can\'t be {value!r}: give {" or ".join(words)}, or an offset as JSON')


def _count(name: str, value: str | None) -> int | None:
    if value is None:
        return None
    if not re.fullmatch("[1-9][0-9]{0,8}", value.strip()):
        raise ConfigError(f'the option "{name}" can\'t be {value!r}: give an integer from 1 on')
    return int(value)


def _check_name(name: str, *, reading: bool) -> None:
    taken, refused = (_READING, _WRITING) if reading else (_WRITING, _READING)
    known = {plain(one): one for one in (*_BOTH, *taken)}
    if plain(name) in {*known, *_INTERNAL, *_OF_STREAMS}:
        return
    if plain(name) in map(plain, refused):
        raise ConfigError(f'the option "{name}" is only for {"writing" if reading else "reading"}: leave it out')
    near = get_close_matches(plain(name), known, n=1)
    hint = f'did you mean "{known[near[0]]}"?' if near else f"there are {', '.join(known.values())}"
    raise ConfigError(f'format("pgcombine") has no option "{name}": {hint}')
