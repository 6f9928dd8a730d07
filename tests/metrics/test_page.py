"""Prometheus accepts the configuration on the page about metrics."""

from __future__ import annotations

from pathlib import Path

import yaml
from support.promql import promtool
from support.readme import ROOT, fences

PAGE = ROOT / "pgcombine" / "docs" / "metrics.md"


def test_prometheus_reads_the_jobs(tmp_path: Path) -> None:
    (text,) = fences(PAGE, "yaml")
    file = tmp_path / "prometheus.yml"
    file.write_text(text, encoding="utf-8")
    promtool("check", "config", file)
    assert len({job["job_name"] for job in yaml.safe_load(text)["scrape_configs"]}) == 2
