"""Every metric is on the page, as it is served, and Prometheus reads the page's configuration."""

from __future__ import annotations

import re
from pathlib import Path

import yaml
from support.promql import promtool
from support.readme import ROOT, fences

from pgcombine.metrics import names

PAGE = ROOT / "pgcombine" / "docs" / "metrics.md"


def test_the_page_has_all_metrics() -> None:
    page = PAGE.read_text("utf-8")
    rows = re.findall(r"^\| `(pgcombine_\w+)` \| (\w+) \| ([^|]*)\| [^|]+ \|$", page, re.MULTILINE)
    found = {name: (kind, tuple(re.findall(r"`(\w+)`", labels))) for name, kind, labels in rows}
    assert len(found) == len(rows)
    assert found == {
        one.name: (one.kind, one.labels) for one in (*names.OF_A_PROCESS, names.FIGURES_READ, *names.OF_THE_DATABASE)
    }


def test_prometheus_reads_the_jobs(tmp_path: Path) -> None:
    (text,) = fences(PAGE, "yaml")
    file = tmp_path / "prometheus.yml"
    file.write_text(text, encoding="utf-8")
    promtool("check", "config", file)
    assert len({job["job_name"] for job in yaml.safe_load(text)["scrape_configs"]}) == 2
