"""The counts that phrasecount must give, computed in plain Python, and a corpus for it."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

Counts = dict[str, tuple[int, int]]


def tokens(text: str) -> list[str]:
    return [token for token in re.split(r"[\W_]+", text.lower()) if token]


def expected(*directories: Path) -> Counts:
    """Count the phrases of four words in the UTF-8 files below the directories. Files with equal tokens count once.

    Returns for each phrase the number of files that have it, and the number of its occurrences.
    """
    return expected_of(
        path.read_text(encoding="utf-8") for directory in directories for path in directory.rglob("*") if path.is_file()
    )


def expected_of(texts: Iterable[str]) -> Counts:
    docs: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for words in {tuple(tokens(text)) for text in texts}:
        found = Counter(" ".join(words[i : i + 4]) for i in range(len(words) - 3))
        total.update(found)
        docs.update(found.keys())
    return {phrase: (docs[phrase], total[phrase]) for phrase in total}


def differences(before: Counts, after: Counts) -> int:
    """The number of phrases whose counts differ."""
    return sum(before.get(phrase) != after.get(phrase) for phrase in before.keys() | after.keys())


def write_corpus(directory: Path, documents: int, seed: int, words: int = 60) -> None:
    """Write files of random words from a small vocabulary, so that phrases recur. Some files are in folders."""
    chance = random.Random(seed)
    for number in range(documents):
        write_document(directory / ("", "deep/", "deep/.", "_under/")[number % 4] / f"{number:03}.txt", chance, words)


def write_document(path: Path, chance: random.Random, words: int = 60) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    vocabulary = ["whale", "Sea", "ship", "İstanbul", "ΟΔΟΣ", "naïve", "42"]
    path.write_text(" ".join(chance.choices(vocabulary, k=words)) + ".\n", encoding="utf-8")


def edit_corpus(directory: Path, chance: random.Random) -> None:
    """Rewrite three files, remove one file, add one, and copy one."""
    files = sorted(path for path in directory.rglob("*") if path.is_file())
    for path in chance.sample(files, 3):
        write_document(path, chance)
    chance.choice(files).unlink()
    write_document(directory / f"new-{chance.randrange(10**9)}.txt", chance)
    source = chance.choice(sorted(path for path in directory.rglob("*") if path.is_file()))
    (directory / f"copy-{chance.randrange(10**9)}.txt").write_bytes(source.read_bytes())
