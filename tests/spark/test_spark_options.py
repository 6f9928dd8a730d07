"""``format("pgcombine")`` accepts its options and refuses others with a message."""

from __future__ import annotations

import pytest

from pgcombine.errors import ConfigError
from pgcombine.spark.options import Options

GIVEN = {"queue": "wc", "dsn": "host=a"}


def refusal(options: dict[str, str], *, reading: bool = False) -> str:
    with pytest.raises(ConfigError) as error:
        Options.of({**GIVEN, **options}, reading=reading)
    return str(error.value)


def test_unknown_option_is_refused_with_the_nearest() -> None:
    for name, nearest in (
        *(("preagregate", "preaggregate"), ("pre-aggregate", "preaggregate"), ("preaggregates", "preaggregate")),
        *(("runidd", "runId"), ("run-id", "runId"), ("ques", "queue")),
    ):
        assert refusal({name: "x"}) == f'format("pgcombine") has no option "{name}": did you mean "{nearest}"?'


def test_unknown_option_without_a_near_one_lists_all() -> None:
    assert refusal({"path": "/x"}) == (
        'format("pgcombine") has no option "path": there are queue, dsn, runId, preaggregate, front, source'
    )
    assert refusal({"header": "true"}, reading=True).endswith(
        "there are queue, dsn, columns, where, feed, startingOffsets, endingOffsets, maxChangesPerTrigger, consumer"
    )


def test_option_of_the_other_direction_is_refused() -> None:
    assert refusal({"where": "n > 1"}) == 'the option "where" is only for reading: leave it out'
    assert refusal({"runId": "r"}, reading=True) == 'the option "runId" is only for writing: leave it out'


def test_options_that_spark_adds_are_accepted() -> None:
    options = Options.of({**GIVEN, "checkpointLocation": "/c", "queryName": "q", "RUN_ID": "r"})
    assert options.run_id == "r"


def test_empty_offsets_are_the_defaults() -> None:
    feed = {"feed": "f", "dsn": "host=a"}
    given = Options.of({**feed, "startingOffsets": "", "endingOffsets": ""}, reading=True)
    without = Options.of(feed, reading=True)
    assert (given.start, given.end) == (without.start, without.end) == ("", "latest")


def test_environment_names_the_database(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="PGCOMBINE_DSN"):
        Options.of({"queue": "wc"})
    monkeypatch.setenv("PGCOMBINE_DSN", "postgresql+psycopg://user:secret@there/db")
    options = Options.of({"queue": "wc"})
    assert options.dsn == "postgresql://user:secret@there/db"
    assert "secret" not in repr(options)
    assert Options.of(GIVEN).dsn == "host=a"
