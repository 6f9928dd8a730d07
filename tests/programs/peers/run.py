"""The rounds of a run: each contender has one turn in each round, in a rotated order.

The measurement of a failed turn has the error, and the run goes on. The figure of a held snapshot has no such rounds:
:mod:`.snapshot` measures it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing

from pgcombine.database.connect import connect

from .contender import Contender
from .measurement import Measurement, kept, rotated
from .measures import FIGURES, OVERHEAD, Figure, Lengths
from .snapshot import held_snapshot
from .source import OF_SOURCE
from .turn import Base, database


def missing(dsn: str, contenders: Sequence[Contender]) -> dict[str, str]:
    """Return the names of the contenders that can't run on the server, each with the reason."""
    with closing(connect(dsn)) as connection:
        reasons = {contender.name: contender.missing(connection) for contender in contenders}
    return {name: reason for name, reason in reasons.items() if reason is not None}


def in_figure(contenders: Sequence[Contender], figure: str) -> list[Contender]:
    """Return the contenders that take part in a figure.

    In a figure with ``Figure.source``, these are the contenders of ``OF_SOURCE`` with the names of the given ones. In
    another figure they are the given ones, without those whose ``only`` leaves the figure out.
    """
    if FIGURES[figure].source:
        names = {contender.name for contender in contenders}
        return [contender for contender in OF_SOURCE if contender.name in names]
    return [contender for contender in contenders if not contender.only or figure in contender.only]


def planned(contenders: Sequence[Contender], figure: Figure, lengths: Lengths) -> tuple[int, float]:
    """Return the number of turns of a figure, and about how many seconds they take."""
    there = len(in_figure(contenders, figure.name))
    turns = lengths.rounds_of(figure.name) * there
    each = figure.seconds(lengths) + OVERHEAD
    return turns, turns * each + there * figure.once(lengths)


def run(base: Base, contenders: Sequence[Contender], figures: Sequence[str], lengths: Lengths) -> Iterator[Measurement]:
    """Measure the figures. Yields the measurement of each turn."""
    peaks: dict[str, float] = {}
    for name in figures:
        taking_part = in_figure(contenders, name)
        if FIGURES[name].measure is None:
            yield from held_snapshot(base, taking_part, lengths)
            continue
        for number in range(lengths.rounds_of(name)):
            for contender in rotated(taking_part, number):
                yield _turn(base, contender, FIGURES[name], number, lengths, peaks)


def _turn(
    base: Base, contender: Contender, figure: Figure, number: int, lengths: Lengths, peaks: dict[str, float]
) -> Measurement:
    assert figure.measure is not None
    found = Measurement(figure.name, contender.name, number)
    with kept(found), database(base, contender) as turn:
        with turn.consumer():
            turn.warm()
            turn.next_window()
            values = figure.measure(turn, lengths, peaks)
            found.values = {name: value for name, value in values.items() if name not in contender.unmeasured}
            turn.settle()
        turn.judge(found)
    return found
