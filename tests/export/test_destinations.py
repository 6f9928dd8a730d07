"""The search for entries that a destination refuses."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgcombine.errors import DeliveryRejectedError, DestinationDownError
from pgcombine.runtime.destinations import bisect


def refusing(bad: set[int], taken: list[int]) -> Callable[[Sequence[int]], None]:
    def deliver(part: Sequence[int]) -> None:
        if bad & set(part):
            raise DeliveryRejectedError(f"bad: {sorted(bad & set(part))[0]}")
        taken.extend(part)

    return deliver


@given(st.integers(0, 200).flatmap(lambda n: st.tuples(st.just(n), st.sets(st.integers(0, max(0, n - 1)), max_size=8))))
def test_other_entries_are_delivered_in_order(case: tuple[int, set[int]]) -> None:
    size, bad = case
    taken: list[int] = []
    outcome = bisect(range(size), refusing(bad, taken))
    assert taken == outcome.delivered == [n for n in range(size) if n not in bad]
    assert [entry for entry, _ in outcome.rejected] == sorted(bad & set(range(size)))
    assert outcome.down is None


def test_search_for_one_failing_entry_takes_a_logarithm_of_attempts() -> None:
    outcome = bisect(range(1024), refusing({700}, []))
    assert outcome.attempts == 21
    assert str(outcome.rejected[0][1]) == "bad: 700"


def test_search_stops_when_the_destination_fails() -> None:
    taken: list[int] = []

    def deliver(part: Sequence[int]) -> None:
        if 60 in part:
            if len(part) == 1:
                raise DestinationDownError("gone")
            raise DeliveryRejectedError("bad")
        if 3 in part:
            raise DeliveryRejectedError("bad")
        taken.extend(part)

    outcome = bisect(range(100), deliver)
    assert str(outcome.down) == "gone"
    assert [entry for entry, _ in outcome.rejected] == [3]
    assert outcome.delivered == taken == [n for n in range(60) if n != 3]


def test_destination_that_refuses_everything_is_up() -> None:
    """A destination that refuses each entry may still accept the next one, so it doesn't count as down."""
    outcome = bisect(range(1000), refusing(set(range(1000)), []))
    assert outcome.delivered == []
    assert [entry for entry, _ in outcome.rejected] == list(range(1000))
    assert outcome.down is None


def test_other_errors_are_raised() -> None:
    def deliver(part: Sequence[int]) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        bisect([1, 2], deliver)
