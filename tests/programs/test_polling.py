"""``polling`` reads each view that the page on monitoring lets read each second, and none that counts."""

from __future__ import annotations

import re

from support.readme import ROOT

from .polling import VIEWS


def test_it_reads_all_cheap_views() -> None:
    page = (ROOT / "pgcombine" / "docs" / "monitoring.md").read_text(encoding="utf-8")
    cheap, heading, _ = page.partition("\n## Views that count\n")
    assert heading
    assert sorted(VIEWS) == sorted(re.findall(r"^## (\w+)$", cheap, re.MULTILINE))
