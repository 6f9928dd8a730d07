"""The options of ``format("pgcombine")``, parsed and checked. A wrong option raises :class:`ConfigError`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from uuid import UUID

from pgcombine.config import given_dsn
from pgcombine.errors import ConfigError

_BOTH = ("queue", "dsn")
_READING = ("columns", "where")
_WRITING = ("runId", "preaggregate")
_INTERNAL = {"load", "mode"}  # set by staged() and initialize()
_OF_STREAMS = {"checkpointlocation", "queryname"}  # Spark passes its own options to the format
_MODES = ("staged", "initialize", "prepare")


@dataclass(frozen=True)
class Options:
    """The parsed options.

    ``columns`` and ``where`` restrict reading. If they are empty, everything is read. In the mode ``prepare``, the job
    writes the rows of the load ``load``, and another session applies them. In other modes the job begins a load itself.
    """

    queue: str
    dsn: str = field(repr=False)
    run_id: str | None = None
    load: UUID | None = None
    mode: str = "staged"
    preaggregate: bool = False
    columns: tuple[str, ...] = ()
    where: str = ""

    @classmethod
    def of(cls, given: Mapping[str, str], *, reading: bool = False) -> Options:
        """Parse the options that the user gave. Names are accepted in any case, with or without ``_``.

        Without the option ``dsn`` the environment names the database. ``reading`` says whether the options are for
        reading or for writing. Raises ConfigError for a wrong value, for an unknown option, and for an option of the
        other kind.
        """
        options = {plain(name): value for name, value in given.items()}
        for name in given:
            _check_name(name, reading=reading)
        if not options.get("queue"):
            raise ConfigError('format("pgcombine") needs the option "queue": .option("queue", …)')
        mode = options.get("mode", "staged").lower()
        if mode not in _MODES or (mode == "prepare") != ("load" in options):
            raise ConfigError(f'the option "mode" can\'t be {mode!r}: leave it out')
        run_id = options.get("runid")
        if run_id is not None and not run_id:
            raise ConfigError('the option "runId" is empty: give a text that names the run, such as a date')
        return cls(
            queue=options["queue"],
            dsn=chosen_dsn(options.get("dsn")),
            run_id=run_id,
            load=UUID(options["load"]) if mode == "prepare" else None,
            mode=mode,
            preaggregate=truth("preaggregate", options.get("preaggregate", "false")),
            columns=tuple(name.strip() for name in options.get("columns", "").split(",") if name.strip()),
            where=options.get("where", ""),
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


def truth(name: str, value: object) -> bool:
    """Return an option's value as a bool. Raises ConfigError if it is neither "true" nor "false"."""
    if str(value).lower() not in {"true", "false"}:
        raise ConfigError(f'the option "{name}" can\'t be {value!r}: give "true" or "false"')
    return str(value).lower() == "true"


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
