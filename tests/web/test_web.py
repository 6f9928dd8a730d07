"""Parts of the pages that need no database: charts, texts, addresses."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from pgcombine.errors import ConfigError
from pgcombine.web.charts import CHART, DURATIONS, LEVELS, SPARK, drawn, level, rounded_up
from pgcombine.web.figures import Part
from pgcombine.web.history import Point
from pgcombine.web.lines import Lines, arriving, per_second, since
from pgcombine.web.serve import listening, require_token
from pgcombine.web.texts import age, clock, counted, key, number, seconds, shown, size, until, when
from pgcombine.web.verdict import STATES, Verdict, is_served, state_of, verdict

TOKEN = "a token of some length"
AT = datetime(2026, 11, 23, 7, 5, 9, tzinfo=UTC)


def test_numbers_are_short() -> None:
    values = [None, 0, 1234, 9999, 12_345, 4_560_000, 123_456_789, 5e13, 0.25, 12.34, 99.96, 123.4, 999.97, -12_345]
    texts = "\N{EN DASH} 0 1,234 9,999 12.3k 4.56M 123M 50.0T 0.25 12.3 100 123 1,000 -12.3k"
    assert [number(value) for value in values] == texts.split()


def test_durations_are_short() -> None:
    values = [0, 0.0012, 0.0123, 0.9994, 0.9996, 9.94, 9.96, 119.4, 119.6, 3569, 3600, 7260, 86_399, 90_000]
    texts = "0 s|1.2 ms|12 ms|999 ms|1.0 s|9.9 s|10 s|119 s|2 min|59 min|1 h|2 h 1 min|1 d|1 d 1 h"
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
    assert age(datetime.now(UTC) - timedelta(hours=3)) == "3 h"
    assert [until(datetime.now(UTC) + timedelta(seconds=left)) for left in (12.1, -1)] == ["in 12 s", "now"]
    assert counted(1, "update") == "1 update"
    assert counted(0, "update") == "0 updates"
    assert [counted(n, "delivery", "deliveries") for n in (1, 2)] == ["1 delivery", "2 deliveries"]
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
    unserved = "unattended" if state == "behind" else state
    assert state_of(well | figures, served=False) == unserved


def test_queue_is_served_by_workers_of_all_queues_or_of_this_one() -> None:
    assert not is_served("wc", Part())
    assert not is_served("wc", Part([{"queues": ["other"]}]))
    assert is_served("wc", Part([{"queues": ["other"]}, {"queues": ["wc"]}]))
    assert is_served("wc", Part([{"queues": None}]))
    assert is_served("wc", Part(trouble="not allowed")), "a queue isn't called unattended if nobody knows"


def test_verdict_says_the_worst_first() -> None:
    worker = Part([{"worker": "w", "state": "idle", "queues": None}])

    def said(*states: str, pending: int = 0, **parts: Part) -> Verdict:
        rows = [
            {"queue": f"q{n}", "state": state, "paused": state == "paused", "pending": pending}
            for n, state in enumerate(states)
        ]
        return verdict(rows, {"workers": worker, "snapshots": Part(), "down": Part()} | parts)

    assert said() == ("info", "There is no queue yet", ())
    assert said("well") == ("ok", "q0 is well", ())
    assert said("well", "well") == ("ok", "All 2 queues are well", ())
    assert said("well", "paused", "waiting") == ("info", "q2 lags by more than 10 s", ["q1 is paused"])
    assert said("well", workers=Part()) == ("warning", "No worker is connected", [])
    lost = Part([{"worker": name, "state": "connecting", "queues": None} for name in "vw"])
    assert said("well", workers=lost) == ("warning", "2 workers wait for connections", [])
    assert said("unattended", workers=Part()) == ("error", "q0 has no worker", [])
    assert said("paused", "paused", "behind", "failing", pending=1) == (
        "error",
        "q3 is failing",
        ["q2 is behind", "2 queues are paused, and updates wait"],
    )
    well = [{"queue": "q0", "state": "well", "paused": False, "pending": 0}]
    parts = {"workers": worker, "snapshots": Part(), "down": Part()}
    assert verdict(well, parts, 1) == ("error", "The doctor finds 1 error", [])
    assert verdict(well, parts | {"workers": Part()}, 2).also == ["No worker is connected"]
    exports = Part([{"export": "a", "state": "suspect"}, {"export": "b", "state": "down"}])
    assert said("well", down=exports, snapshots=Part([{"name": "x"}])) == (
        "error",
        "The destination of b is down",
        ["The destination of a may be down", "An old transaction holds space"],
    )


def test_texts_from_outside_are_made_printable() -> None:
    assert shown("a\nb\x00\u202ec") == "a\\nb\\x00\\u202ec"
    assert shown("x" * 300) == "x" * 200 + "… (300 characters)"
    assert shown(None) == "null"
    assert key({"a": "x"}) == "x"
    assert key({"a": "x", "b": None, "c": 1}) == "(x, null, 1)"


def test_chart_draws_its_points() -> None:
    chart = drawn([(0, 0), (50, 10), (100, 5)], [(0, 5)], begin=0, end=100, gap=60, form=CHART)
    line, other = chart.lines
    assert line.line == "M88 182L357 12L626 97"
    assert line.area == "M88 182L88 182L357 12L626 97L626 182Z"
    assert (line.last, line.peak, line.peak_at) == (5, 10, datetime.fromtimestamp(50, UTC))
    assert other.line == "M88 97h0", "all lines have one axis of values"
    assert [*chart.up] == [(182, 0), (97, 5), (12, 10)]
    assert [*chart.across] == [(410.8, 60)]
    assert [tick.value for tick in drawn([], begin=0, end=310, gap=60).across] == [60, 120, 180, 240]


def test_chart_draws_no_line_across_a_gap() -> None:
    def path(*points: tuple[float, float], gap: float) -> str:
        return drawn(points, begin=0, end=100, gap=gap).lines[0].line

    assert path((0, 1), (10, 1), (60, 1), (70, 1), gap=20).count("M") == 2
    assert path((0, 1), (10, 1), (60, 1), (70, 1), gap=50).count("M") == 1
    assert path((50, 1), gap=20).endswith("h0"), "a single point is drawn as a dot"


def test_chart_keeps_the_highest_of_many_points() -> None:
    series = [(float(at), 100.0 if at == 1717 else 1.0) for at in range(3600)]
    (line,) = drawn(series, begin=0, end=3600, gap=15, form=SPARK).lines
    assert line.line.count("M") == 1
    assert line.line.count("L") == SPARK.parts - 1
    assert (line.peak, line.last) == (100, 1)
    assert f" {SPARK.top}L" in line.line


def test_empty_chart_has_no_line() -> None:
    chart = drawn([(-5, 1), (105, 1)], begin=0, end=100, gap=20)
    (line,) = chart.lines
    assert (line.line, line.area, line.last, line.peak, line.peak_at) == ("", "", None, None, None)
    assert [tick.value for tick in chart.up] == [0, 1, 2]


def test_axis_has_round_numbers() -> None:
    assert [rounded_up(value) for value in (0, 2, 2.1, 5, 11, 60, 1000, 1001)] == [2, 2, 5, 5, 20, 100, 1000, 2000]
    assert [rounded_up(value, DURATIONS) for value in (0, 3, 21, 61, 3601, 1e6)] == [2, 4, 60, 120, 7200, 1e6]
    assert [level(value, 100) for value in (0, 1, 20, 21, 99, 100)] == [0, 1, 1, 2, 5, LEVELS]
    assert level(0, 0) == 0


def test_minutes_without_passes_are_zero() -> None:
    begin = datetime(2026, 11, 23, 7, 0, tzinfo=UTC)
    minutes = [{"minute": begin + timedelta(minutes=n), "updates": 600} for n in (0, 1, 4)]
    now = begin.timestamp() + 7 * 60
    points = per_second(minutes, (), "updates", {"updates_per_second_1m": 3.0}, now)
    rates = {round(at - begin.timestamp()): rate for at, rate in points}
    assert rates == {60: 10, 120: 10, 180: 0, 240: 0, 300: 10, 420: 3}, (
        "the last minutes may be incomplete and must be left out"
    )
    later = per_second(minutes, (), "updates", {"updates_per_second_1m": 0}, now + 120)
    assert [(round(at - now), rate) for at, rate in later[-3:]] == [(-120, 10), (-60, 0), (120, 0)]
    assert per_second([], (), "updates", {"updates_per_second_1m": 0}, now) == [(now, 0)]


def point(at: float, inserted: int | None, updates: float = 0) -> Point:
    return Point(at, 0, 0, updates, 0, inserted)


def test_own_points_replace_the_minutes() -> None:
    minutes = [{"minute": AT + timedelta(minutes=n), "updates": 600} for n in range(5)]
    start = AT.timestamp()
    points = [point(start + at, 0, updates=at) for at in (130, 135)]
    rates = per_second(minutes, points, "updates", {"updates_per_second_1m": 7}, start + 140)
    assert [(at - start, rate) for at, rate in rates] == [(60, 10), (120, 10), (130, 130), (135, 135), (140, 7)]


def test_charts_of_all_queues_have_the_same_axes() -> None:
    """Also if some are drawn seconds later, in a period in which the charts are kept."""

    class Known:
        began = 0.0

        def minutes(self) -> dict[str, list[dict[str, object]]]:
            return {}

        def points(self, _: str) -> list[Point]:
            return [point(at, at) for at in range(0, now, 5)]

    now = 3600
    lines = Lines(Known(), clock=lambda: now)
    row = {"lag_seconds": 1.0, "pending": 1, "updates_per_second_1m": 2.0, "changes_per_second_1m": 3.0}
    first = lines.charts(row | {"queue": "a"})
    now = 3604
    second = lines.charts(row | {"queue": "b"})
    assert [first.lag.across, first.rates.across] == [second.lag.across, second.rates.across]
    assert [line.last for line in second.rates.lines] == [2.0, 1.0]
    assert (second.lag.lines[0].last, second.pending.lines[0].last, second.changes.lines[0].last) == (1, 1, 3)
    small = lines.charts(row | {"queue": "a"}, SPARK)
    assert lines.incoming("a") == 1.0
    now = 3670
    assert lines.charts(row | {"queue": "a"}, SPARK) is small, "less than an interval of its axis is new"
    assert lines.charts(row | {"queue": "a"}).lag.begin > first.lag.begin
    now = 3690
    assert lines.charts(row | {"queue": "a"}, SPARK) is not small


def test_arriving_updates_are_averaged_over_a_minute() -> None:
    steady = [point(at, 20 * at) for at in range(0, 200, 5)]
    assert arriving(steady) == [(at, 20) for at in range(10, 200, 5)], "no rate of less than two polls"
    burst = [point(at, 600 if at >= 60 else 0) for at in range(0, 200, 5)]
    assert dict(arriving(burst))[60] == 10
    assert dict(arriving(burst))[115] == 10
    assert dict(arriving(burst))[195] == 0


def test_arriving_updates_survive_a_reset() -> None:
    assert arriving([]) == []
    known = [point(at, 100 * at if at < 50 else 10 * (at - 50)) for at in range(0, 120, 5)]
    found = dict(arriving(known))
    assert (found[45], found[60], found[110]) == (100, 10, 10)
    assert 50 not in found
    unknown = [point(at, None if at < 50 else 10 * at) for at in range(0, 120, 5)]
    assert dict(arriving(unknown)) == dict.fromkeys(range(60, 120, 5), 10)
    assert arriving([point(at, None) for at in (0, 10, 20)]) == []


@pytest.mark.parametrize(("minutes_ago", "covered"), [((), 120), ((1,), 120), ((20, 19, 2), 20 * 60), ((400, 2), 3600)])
def test_axis_of_rates_fits_the_known_minutes(minutes_ago: tuple[int, ...], covered: int) -> None:
    minutes = [{"minute": AT - timedelta(minutes=ago)} for ago in minutes_ago]
    now = AT.timestamp()
    assert now - since(minutes, now, now) == covered
    assert now - since(minutes, now, now - 1800) == max(covered, 1800)


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
