"""Parts of the pages that need no database: charts, texts, addresses."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from pgcombine.errors import ConfigError
from pgcombine.web.charts import CHART, LEVELS, SPARK, drawn, level, rounded_up
from pgcombine.web.lines import per_second, since
from pgcombine.web.pages import STATES, state_of
from pgcombine.web.serve import listening, require_token
from pgcombine.web.texts import age, clock, counted, key, number, seconds, shown, size, when

TOKEN = "a token of some length"
AT = datetime(2026, 11, 23, 7, 5, 9, tzinfo=UTC)


def test_numbers_are_short() -> None:
    values = [None, 0, 1234, 9999, 12_345, 4_560_000, 123_456_789, 5e13, 0.25, 12.34, 99.96, 123.4, 999.97, -12_345]
    texts = "\N{EN DASH} 0 1,234 9,999 12.3k 4.56M 123M 50.0T 0.25 12.3 100 123 1,000 -12.3k"
    assert [number(value) for value in values] == texts.split()


def test_durations_are_short() -> None:
    values = [0, 0.0012, 0.0123, 0.9994, 0.9996, 9.94, 9.96, 119.4, 119.6, 3569, 3600, 7260, 86_399, 90_000]
    texts = "0 s|1.2 ms|12 ms|999 ms|1.0 s|9.9 s|10 s|119 s|2 min|59 min|1 h 0 min|2 h 1 min|1 d 0 h|1 d 1 h"
    assert [seconds(value) for value in values] == texts.split("|")


def test_other_texts_are_short() -> None:
    assert [seconds(value) for value in (None, float("inf"), float("nan"))] == ["\N{EN DASH}"] * 3
    assert [size(value) for value in (0, 1023, 1024, 12_345_678, 5 * 2**40)] == [
        "0 B",
        "1023 B",
        "1.0 kB",
        "12 MB",
        "5.0 TB",
    ]
    assert when(AT) == "2026-11-23 07:05:09 UTC"
    assert clock(AT) == clock(AT.timestamp()) == "07:05"
    assert age(datetime.now(UTC) - timedelta(hours=3)) == "3 h 0 min"
    assert counted(1, "update") == "1 update"
    assert counted(0, "update") == "0 updates"
    assert [one(None) for one in (size, when, clock, age)] == ["\N{EN DASH}"] * 4


@pytest.mark.parametrize(
    ("figures", "state"),
    [
        ({}, "well"),
        ({"lag_seconds": 10.0}, "well"),
        ({"lag_seconds": 10.1}, "waiting"),
        ({"lag_seconds": 60.1}, "behind"),
        ({"lag_seconds": 60.1, "paused": True}, "paused"),
        ({"paused": True, "quarantined_keys": 1}, "quarantine"),
        ({"quarantined_keys": 1, "failing_buckets": 1}, "failing"),
        ({"pending_at": None}, "unknown"),
    ],
)
def test_state_follows_the_figures(figures: dict[str, object], state: str) -> None:
    well = {"failing_buckets": 0, "quarantined_keys": 0, "paused": False, "lag_seconds": 0.0, "pending_at": AT}
    assert state_of(well | figures) == state
    assert state in STATES


def test_texts_from_outside_are_made_printable() -> None:
    assert shown("a\nb\x00\u202ec") == "a\\nb\\x00\\u202ec"
    assert shown("x" * 300) == "x" * 200 + "… (300 characters)"
    assert shown(None) == "null"
    assert key({"a": "x"}) == "x"
    assert key({"a": "x", "b": None, "c": 1}) == "(x, null, 1)"


def test_chart_draws_its_points() -> None:
    chart = drawn([(0, 0), (50, 10), (100, 5)], 0, 100, gap=60, form=CHART)
    assert chart.line == "M72 142L351 12L630 77"
    assert chart.area == "M72 142L72 142L351 12L630 77L630 142Z"
    assert (chart.last, chart.peak, chart.peak_at) == (5, 10, datetime.fromtimestamp(50, UTC))
    assert [*chart.up] == [(142, 0), (77, 5), (12, 10)]
    assert [*chart.across] == [(406.8, 60)]
    assert [tick.value for tick in drawn([], 0, 310, gap=60, form=CHART).across] == [60, 120, 180, 240]


def test_chart_draws_no_line_across_a_gap() -> None:
    assert drawn([(0, 1), (10, 1), (60, 1), (70, 1)], 0, 100, gap=20).line.count("M") == 2
    assert drawn([(0, 1), (10, 1), (60, 1), (70, 1)], 0, 100, gap=50).line.count("M") == 1
    assert drawn([(50, 1)], 0, 100, gap=20).line.endswith("h0"), "a single point is drawn as a dot"


def test_chart_keeps_the_highest_of_many_points() -> None:
    series = [(float(at), 100.0 if at == 1717 else 1.0) for at in range(3600)]
    chart = drawn(series, 0, 3600, gap=15, form=SPARK)
    assert chart.line.count("M") == 1
    assert chart.line.count("L") == SPARK.parts - 1
    assert (chart.peak, chart.last) == (100, 1)
    assert f" {SPARK.top}L" in chart.line


def test_empty_chart_has_no_line() -> None:
    chart = drawn([(-5, 1), (105, 1)], 0, 100, gap=20)
    assert (chart.line, chart.area, chart.last, chart.peak, chart.peak_at) == ("", "", None, None, None)
    assert [tick.value for tick in chart.up] == [0, 1, 2]


def test_axis_has_round_numbers() -> None:
    assert [rounded_up(value) for value in (0, 2, 2.1, 5, 11, 60, 1000, 1001)] == [2, 2, 5, 5, 20, 100, 1000, 2000]
    assert [level(value, 100) for value in (0, 1, 20, 21, 99, 100)] == [0, 1, 1, 2, 5, LEVELS]
    assert level(0, 0) == 0


def test_minutes_without_passes_are_zero() -> None:
    begin = datetime(2026, 11, 23, 7, 0, tzinfo=UTC)
    minutes = [{"minute": begin + timedelta(minutes=n), "updates": 600} for n in (0, 1, 4)]
    now = begin.timestamp() + 7 * 60
    points = per_second(minutes, "updates", {"updates_per_second_1m": 3.0}, now)
    rates = {round(at - begin.timestamp()): rate for at, rate in points}
    assert rates == {30: 10, 90: 10, 150: 0, 210: 0, 270: 10, 420: 3}, (
        "the last minutes may be incomplete and must be left out"
    )
    later = per_second(minutes, "updates", {"updates_per_second_1m": 0}, now + 120)
    assert [(round(at - now), rate) for at, rate in later[-3:]] == [(-150, 10), (-90, 0), (120, 0)]
    assert per_second([], "updates", {"updates_per_second_1m": 0}, now) == [(now, 0)]


@pytest.mark.parametrize(
    ("minutes_ago", "covered"), [((), 300), ((2,), 300), ((20, 19, 2), 20 * 60), ((400, 2), 3 * 3600)]
)
def test_axis_of_throughput_fits_the_known_minutes(minutes_ago: tuple[int, ...], covered: int) -> None:
    minutes = [{"minute": AT - timedelta(minutes=ago)} for ago in minutes_ago]
    assert AT.timestamp() - since(minutes, AT.timestamp(), 3 * 3600) == covered


def test_token_is_required_for_open_addresses() -> None:
    for host in ("127.0.0.1", "127.9.9.9", "::1", "localhost"):
        require_token(host, [], None)
    require_token("0.0.0.0", [], TOKEN)
    require_token("127.0.0.1", ["queues.example"], TOKEN)
    for host in ("0.0.0.0", "::", "192.0.2.1", "host.example", ""):
        with pytest.raises(ConfigError, match="can be read from elsewhere"):
            require_token(host, [], None)
    with pytest.raises(ConfigError, match=r"under the name queues\.example can be read from elsewhere"):
        require_token("127.0.0.1", ["queues.example"], None)
    with pytest.raises(ConfigError, match="has 5 characters, but needs 16"):
        require_token("127.0.0.1", [], "short")


def test_unusable_addresses_are_refused() -> None:
    with listening("127.0.0.1", 0) as sock:
        port = sock.getsockname()[1]
        with pytest.raises(ConfigError, match=str(port)):
            listening("127.0.0.1", port)
    with pytest.raises(ConfigError, match=r"nowhere.invalid"):
        listening("nowhere.invalid", 0)
