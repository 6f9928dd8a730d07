"""Prometheus can read the alerts, the alerts fire at the right time, and they name existing metrics and labels."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import resources
from pathlib import Path

import pytest
import yaml
from support.promql import labels_of, metrics_of, promtool
from support.readme import ROOT, anchors
from support.servers import embedded_only

FILE = Path(str(resources.files("pgcombine.metrics") / "alerts.yml"))
((GROUP,),) = yaml.safe_load(FILE.read_text("utf-8")).values()
RULES = {rule["alert"]: rule for rule in GROUP["rules"]}


def test_prometheus_reads_the_alerts() -> None:
    promtool("check", "rules", FILE)


def test_alerts_fire_at_the_right_time() -> None:
    promtool("test", "rules", Path(__file__).with_name("alerts.test.yml"))


def test_promtool_finds_a_broken_rule(tmp_path: Path) -> None:
    broken = tmp_path / "alerts.yml"
    broken.write_text(FILE.read_text("utf-8").replace("> 300", "> 100000"), encoding="utf-8")
    tests = Path(__file__).with_name("alerts.test.yml").read_text("utf-8")
    copy = tmp_path / "alerts.test.yml"
    copy.write_text(tests.replace("../../pgcombine/metrics/alerts.yml", broken.name), encoding="utf-8")
    with pytest.raises(AssertionError, match="PgcombineLag"):
        promtool("test", "rules", copy)


@embedded_only
def test_alerts_name_existing_metrics(series: Mapping[str, frozenset[str]]) -> None:
    for name, rule in RULES.items():
        used = metrics_of(rule["expr"])
        assert used, name
        assert used <= series.keys(), name
        # Prometheus adds the labels instance and job
        assert labels_of(rule["expr"]) - {"instance", "job"} <= frozenset().union(
            *(series[metric] for metric in used)
        ), name


@pytest.mark.parametrize("name", RULES)
def test_alerts_keep_databases_apart(name: str) -> None:
    """The label job tells databases apart. Series of another database must not hide an alert."""
    expression = re.sub(r"\bor on \(\) absent\(.*", "", RULES[name]["expr"])
    kept = [part.split(", ") for part in re.findall(r"\b(?:by|on) \(([^)]*)\)", expression)]
    assert kept
    assert all("job" in labels for labels in kept)
    # an aggregation without `by` drops the label job
    assert len(re.findall(r"\b(?:max|sum|count|absent) ?\(", expression)) == 0


@pytest.mark.parametrize("name", RULES)
def test_alert_says_what_to_do(name: str) -> None:
    rule = RULES[name]
    assert set(rule) == {"alert", "expr", "for", "labels", "annotations"}
    assert rule["labels"]["severity"] in {"warning", "critical"}
    annotations = rule["annotations"]
    assert set(annotations) == {"summary", "description", "page"}
    page, _, anchor = annotations["page"].partition("#")
    assert anchor in anchors(ROOT / page)
    labels = set(re.findall(r"\$labels\.(\w+)", " ".join(annotations.values())))
    kept = {label for part in re.findall(r"by \(([^)]*)\)", rule["expr"]) for label in part.split(", ")}
    assert labels <= kept  # any other label would be empty in the text
    for other in re.findall(r"\bPgcombine\w+", annotations["description"]):
        assert other in RULES
