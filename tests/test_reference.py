"""The reference pages are up to date with the headers, help texts and docstrings from which a script makes them."""

from __future__ import annotations

import pytest
from support.reference import PAGES, WRITERS, page


@pytest.mark.parametrize("name", WRITERS)
def test_page_is_up_to_date(name: str) -> None:
    kept = (PAGES / name).read_text(encoding="utf-8")
    assert kept == page(name), "run python tests/support/reference.py, and read the differences"


def test_every_page_is_made() -> None:
    assert sorted(path.name for path in PAGES.iterdir()) == sorted(WRITERS)
