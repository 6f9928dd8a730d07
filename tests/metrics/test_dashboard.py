"""The dashboard for Grafana has the right panels, and its panels use existing metrics and labels."""

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


def test_dashboard_can_be_imported() -> None:
    """An import asks for the data source DS_PROMETHEUS. A provisioned dashboard has a variable of that name."""
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


def test_row_of_stats_precedes_time_series() -> None:
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


def test_prometheus_reads_the_expressions(tmp_path: Path) -> None:
    check_expressions(EXPRESSIONS, tmp_path)


@embedded_only
def test_dashboard_names_existing_metrics(series: Mapping[str, frozenset[str]]) -> None:
    for expression in EXPRESSIONS:
        used = metrics_of(expression)
        assert used, expression
        assert used <= series.keys()
        # Prometheus adds the labels instance and job
        assert labels_of(expression) - {"instance", "job"} <= frozenset().union(*(series[one] for one in used))


def test_metrics_with_a_queue_are_shown_by_queue() -> None:
    shown = {re.sub("_bucket$", "", metric) for expression in EXPRESSIONS for metric in metrics_of(expression)}
    assert shown >= {metric.name for metric in (*names.OF_A_PROCESS, names.FIGURES_READ, *names.OF_THE_DATABASE)}
    for metric in (*names.OF_A_PROCESS, names.FIGURES_READ, *names.OF_THE_DATABASE):
        for expression in EXPRESSIONS:
            if metric.name in expression and "queue" in metric.labels:
                assert 'queue=~"$queue"' in expression


def test_database_figures_are_not_shown_by_process() -> None:
    """Another process may take over these figures, so no panel groups them by process."""
    database = {metric.name for metric in (names.FIGURES_READ, *names.OF_THE_DATABASE)}
    for expression in EXPRESSIONS:
        for metric in metrics_of(expression) & database:
            assert re.search(rf"max(?: by \([\w, ]+\))? \(?{metric}\b|max\({metric}\b", expression), expression


def test_panels_keep_databases_apart() -> None:
    """The label job tells databases apart. Queues of the same name in two databases are different queues."""
    for expression in EXPRESSIONS:
        assert len(re.findall(r"\{job=~\"\$job\"", expression)) == len(metrics_of(expression)), expression
        for kept in re.findall(r"by \(([^)]*)\)", expression):
            assert "job" in kept.split(", ") or kept in {"le", "outcome", "version"}, expression


def test_legends_name_labels_that_are_kept() -> None:
    for target in (target for panel in CHARTS for target in panel["targets"]):
        legend = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
        assert legend <= {*labels_of(target["expr"]), "instance"}
