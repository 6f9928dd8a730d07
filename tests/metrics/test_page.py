"""Every metric is on the page, as it is served."""

from __future__ import annotations

import re

from support.readme import ROOT

from pgcombine.metrics import names


def test_the_page_has_all_metrics() -> None:
    page = (ROOT / "pgcombine" / "docs" / "metrics.md").read_text("utf-8")
    rows = re.findall(r"^\| `(pgcombine_\w+)` \| (\w+) \| ([^|]*)\| [^|]+ \|$", page, re.MULTILINE)
    found = {name: (kind, tuple(re.findall(r"`(\w+)`", labels))) for name, kind, labels in rows}
    assert len(found) == len(rows)
    assert found == {one.name: (one.kind, one.labels) for one in (*names.OF_A_PROCESS, *names.OF_THE_DATABASE)}
