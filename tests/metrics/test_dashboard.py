"""The dashboard for Grafana: its parts, and whether what its panels ask for is there."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from importlib import resources
from itertools import combinations
from pathlib import Path
from typing import Any

from support.promql import check_expressions, labels_of, metrics_of
from support.servers import embedded_only

from pgcombine.metrics import names

DASHBOARD = json.loads(resources.files("pgcombine.metrics").joinpath("grafana.json").read_text("utf-8"))
PANELS: list[dict[str, Any]] = DASHBOARD["panels"]
CHARTS = [panel for panel in PANELS if panel["type"] != "row"]
EXPRESSIONS = [target["expr"] for panel in CHARTS for target in panel["targets"]]
SOURCE = {"type": "prometheus", "uid": "${DS_PROMETHEUS}"}


def test_it_can_be_imported() -> None:
    """The data source is asked for at the import; where a dashboard is provisioned, it is a variable of that name."""
    assert (DASHBOARD["uid"], DASHBOARD["id"]) == ("pgcombine", None)
    (given,) = DASHBOARD["__inputs"]
    assert (given["name"], given["type"], given["pluginId"]) == ("DS_PROMETHEUS", "datasource", "prometheus")
    variables = {variable["name"]: variable for variable in DASHBOARD["templating"]["list"]}
    assert variables.keys() == {"DS_PROMETHEUS", "job", "queue"}
    assert variables["job"]["multi"]
    assert variables["queue"]["multi"]
    assert variables["job"]["query"]["query"] == "label_values(pgcombine_queue_lag_seconds, job)"
    assert variables["queue"]["query"]["query"] == 'label_values(pgcombine_queue_lag_seconds{job=~"$job"}, queue)'
    sources = [part["datasource"] for panel in CHARTS for part in [panel, *panel["targets"]]]
    assert [
        source
        for source in [*sources, *(variables[name]["datasource"] for name in ("job", "queue"))]
        if source != SOURCE
    ] == []
    used = {panel["type"] for panel in CHARTS}
    assert {part["id"] for part in DASHBOARD["__requires"] if part["type"] == "panel"} == used


def test_a_row_of_stats_and_then_time_series() -> None:
    assert len({panel["id"] for panel in PANELS}) == len(PANELS)
    kinds = " ".join(panel["type"] for panel in PANELS)
    assert re.fullmatch("row( stat)+( row( timeseries)+)+", kinds)
    assert all(panel["title"] and panel["description"] for panel in CHARTS)
    for panel in PANELS:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
    for one, other in combinations([panel["gridPos"] for panel in PANELS], 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        assert beside or one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]


def test_prometheus_reads_its_expressions(tmp_path: Path) -> None:
    check_expressions(EXPRESSIONS, tmp_path)


@embedded_only
def test_what_it_names_is_there(series: Mapping[str, frozenset[str]]) -> None:
    for expression in EXPRESSIONS:
        used = metrics_of(expression)
        assert used, expression
        assert used <= series.keys()
        # instance and job: Prometheus adds them
        assert labels_of(expression) - {"instance", "job"} <= frozenset().union(*(series[one] for one in used))


def test_every_metric_is_shown_by_queue_where_it_has_one() -> None:
    shown = {re.sub("_bucket$", "", metric) for expression in EXPRESSIONS for metric in metrics_of(expression)}
    assert shown >= {metric.name for metric in (*names.OF_A_PROCESS, names.FIGURES_READ, *names.OF_THE_DATABASE)}
    for metric in (*names.OF_A_PROCESS, names.FIGURES_READ, *names.OF_THE_DATABASE):
        for expression in EXPRESSIONS:
            if metric.name in expression and "queue" in metric.labels:
                assert 'queue=~"$queue"' in expression


def test_figures_of_the_database_are_of_any_process() -> None:
    """Which process gives them may change, so no panel shows them by process."""
    database = {metric.name for metric in (names.FIGURES_READ, *names.OF_THE_DATABASE)}
    for expression in EXPRESSIONS:
        for metric in metrics_of(expression) & database:
            assert re.search(rf"max(?: by \([\w, ]+\))? \(?{metric}\b|max\({metric}\b", expression), expression


def test_databases_are_told_apart() -> None:
    """One job a database: the same queue in another database is another one."""
    for expression in EXPRESSIONS:
        assert len(re.findall(r"\{job=~\"\$job\"", expression)) == len(metrics_of(expression)), expression
        for kept in re.findall(r"by \(([^)]*)\)", expression):
            assert "job" in kept.split(", ") or kept in {"le", "outcome", "version"}, expression


def test_legends_name_labels_that_are_kept() -> None:
    for target in (target for panel in CHARTS for target in panel["targets"]):
        legend = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
        assert legend <= {*labels_of(target["expr"]), "instance"}
