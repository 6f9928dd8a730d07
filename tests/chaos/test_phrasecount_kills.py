"""Two rounds of ``phrasecount_kills``, which can run more rounds as a program."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from support.phrases import write_corpus

from .phrasecount_kills import rounds

pytestmark = pytest.mark.slow


@pytest.mark.spark
@pytest.mark.timeout(1500)
def test_next_run_counts_right_after_a_kill(home: Path, tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    write_corpus(corpus, 12, seed=1, words=500)
    seed = random.randrange(10**6)
    done = list(rounds(corpus, home, 2, seed))
    assert [one for one in done if not one.right] == [], f"seed {seed}"
    assert len(done) == 2
