"""``pgcombine bench`` measures figures, and removes its database."""

from __future__ import annotations

import json

import psycopg
import pytest
from support import run_cli
from support.servers import embedded_only

from pgcombine.bench.figures import FIGURES

QUICK = ["--seconds", "1", "--rounds", "1", "--keys", "1000", "--rows", "20000", "--buckets", "2", "--json"]


@pytest.mark.slow
@embedded_only
@pytest.mark.parametrize(
    "figure", [pytest.param(name, marks=[pytest.mark.spark] * (name == "spark")) for name in FIGURES]
)
def test_figure_is_measured(figure: str, dsn: str) -> None:
    done = run_cli("bench", "--figure", figure, *QUICK, "--dsn", dsn)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["settings"]["buckets"] == 2
    assert answer["figures"]
    for one in answer["figures"]:
        assert one["queue"] > 0
        if one["baseline"] is not None:
            assert one["ratio"] == pytest.approx(one["queue"] / one["baseline"])
    with psycopg.connect(dsn) as connection:
        left = connection.execute("select count(*) from pg_database where datname like 'pgcombine\\_bench%'").fetchone()
    assert left == (0,)


def test_unknown_figure_fails_in_one_line(dsn: str) -> None:
    done = run_cli("bench", "--figure", "speed", "--dsn", dsn)
    assert done.returncode == 1
    assert 'there is no figure "speed"; figures: end-to-end, freshness, combine, spark' in done.stderr
    assert len(done.stderr.splitlines()) == 1
