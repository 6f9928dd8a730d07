"""The figures of the benchmark by name, and the function that measures them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from pgcombine.bench import export, feed, freshness, load
from pgcombine.bench.scratch import Scratch, throwaway_database
from pgcombine.bench.settings import Result, Settings
from pgcombine.errors import ConfigError

Figure = Callable[[Scratch, Settings], Iterator[Result]]

FIGURES: dict[str, Figure] = {
    "copy": load.copy_and_combine,
    "keys": load.many_keys,
    "enqueue": load.enqueue,
    "hot": load.hot_key,
    "end-to-end": load.end_to_end,
    "upserts": load.upserts,
    "freshness": freshness.freshness,
    "export": export.export,
    "feed": feed.feed,
    "snapshot": freshness.held_snapshot,
    "scale": load.scale,
}
LONG = ("snapshot", "scale")  # these take long, so they are measured only if the user names them


def run(
    dsn: str,
    settings: Settings,
    names: Sequence[str] = (),
    *,
    on_start: Callable[[str], None] = lambda name: None,
) -> Iterator[Result]:
    """Measure the figures ``names`` (default: all but the long ones). Yields each result when it is ready.

    ``on_start`` is called with each figure's name. Raises ConfigError for an unknown figure.
    """
    for name in names:
        if name not in FIGURES:
            raise ConfigError(f'there is no figure "{name}"; figures: {", ".join(FIGURES)}')
    chosen = list(names) or [name for name in FIGURES if name not in LONG]
    with throwaway_database(dsn) as database:
        scratch = Scratch(database, settings)
        try:
            for name in chosen:
                on_start(name)
                yield from FIGURES[name](scratch, settings)
        finally:
            scratch.connection.close()
