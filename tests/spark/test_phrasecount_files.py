"""Files that can't be counted cause one line for each reason, and the other files are counted."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.phrases import Counts, expected_of
from support.servers import embedded_only
from typer.testing import CliRunner

from pgcombine.cli.app import app

from .conftest import Run

pytestmark = [pytest.mark.spark, embedded_only]
Values = Callable[[], Counts]


@pytest.mark.slow
def test_strange_files_cost_a_line_for_each_reason(run: Run, values: Values, tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    (root / "sub").mkdir(parents=True)
    outside.mkdir()
    (root / "good.txt").write_text("one two three four")
    (root / ".hidden").write_text("hidden files are counted too")
    (root / ".git" / "objects").mkdir(parents=True)
    (root / ".git" / "objects" / "broken").symlink_to("nowhere")
    (root / ".git" / "config").write_text("what is in hidden directories isn't")
    (root / "bom.txt").write_bytes(b"\xef\xbb\xbfa byte order mark")
    (root / "nul.txt").write_bytes(b"zero\0bytes\0separate\0words")
    (root / "new\nline.txt").write_text("newlines in a name")
    (root / "linked.txt").symlink_to(outside / "file.txt")
    (outside / "file.txt").write_text("a link to a file")
    (root / "linked-directory").symlink_to(outside)
    (root / "sub" / "up").symlink_to(root)
    (root / "fifo-that-would-block").symlink_to(outside / "fifo")
    os.mkfifo(outside / "fifo")
    (root / "latin1.txt").write_bytes("caf\xe9 au lait s'il vous plait".encode("latin-1"))
    (root / "empty.txt").touch()
    (root / "marks.txt").write_text("... --- ___ !!!")
    (root / "huge.txt").write_text("far too many words " * 100)
    (root / "broken").symlink_to("nowhere")
    (root / "loop").symlink_to("loop")
    (root / "unreadable").symlink_to("/proc/self/mem")  # a regular file whose first byte can't be read
    os.close(os.open(os.fsencode(root) + b"/bad\xff.txt", os.O_CREAT))

    answer = run(root, "--max-bytes", 1000, "--verify")
    figures = answer.json
    assert (figures["documents"], figures["problems"]) == (6, 8)
    assert values() == expected_of(
        [
            "one two three four",
            "hidden files are counted too",
            "a byte order mark",
            "zero bytes separate words",
            "newlines in a name",
            "a link to a file",
        ]
    )
    lines = answer.stderr.splitlines()
    assert sorted(lines) == sorted(
        [
            "not counted: 1 file: name is not UTF-8",
            "not counted: 2 files: link that can't be followed",
            "not counted: 2 files: no tokens",
            "not counted: 1 file: too large",
            "not counted: 1 file: not UTF-8",
            "not counted: 1 file: unreadable (--verbose names them)",
        ]
    )
    lines = run(root, "--max-bytes", 1000, "--verbose").stderr.splitlines()
    assert [line for line in lines if "(--verbose" in line] == []
    named = sorted(line for line in lines if not line.startswith("not counted: "))
    assert named[0] == r"  'bad\udcff.txt'"
    assert named[1] == "  broken"
    assert named[2] == "  empty.txt"
    assert named[3] == "  huge.txt (1,900 bytes, --max-bytes is 1,000)"
    assert named[4] == "  latin1.txt (at byte 3)"
    assert named[5].startswith("  loop (")
    assert named[6] == "  marks.txt"
    assert named[7].startswith("  unreadable (")
    assert lines[lines.index("not counted: 2 files: no tokens") + 1] == "  empty.txt"


@pytest.mark.slow
def test_file_that_became_unreadable_counts_as_absent(run: Run, values: Values, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one two three four")
    (tmp_path / "b").write_text("five six seven eight")
    run(tmp_path)
    (tmp_path / "a").write_bytes(b"\xff")
    assert run(tmp_path, "--verify").json["removed"] == 1
    assert set(values()) == {"five six seven eight"}


def test_result_comes_before_lines_of_skipped_files(spark: Any, dsn: str, tmp_path: Path) -> None:
    (tmp_path / "good").write_text("one two three four")
    for number in range(25):
        (tmp_path / f"{number:02}").touch()
    answer = CliRunner().invoke(app, ["phrasecount", str(tmp_path), "--dsn", dsn])
    assert answer.exit_code == 0, answer.output
    lines = answer.output.splitlines()  # both streams, as a terminal shows them
    assert lines[-1] == "not counted: 25 files: no tokens (--verbose names them)"
    assert not any(line.startswith("not counted") for line in lines[:-1])
    assert any(line.endswith(" 25 files not counted") for line in lines[:-1])


@pytest.mark.slow
def test_phrases_too_long_for_a_key_are_left_out(run: Run, values: Values, tmp_path: Path) -> None:
    fits = "x" * (2600 - len(" b c d"))
    texts = [f"{fits} b c d e", "y" * 100_000 + " f g h i j", " ".join(c * 700 for c in "klmno")]
    for number, text in enumerate(texts):
        (tmp_path / str(number)).write_text(text)
    figures = run(tmp_path, "--verify").json
    assert figures["left_out"] == 3
    assert set(values()) == {f"{fits} b c d", "b c d e", "f g h i", "g h i j"}
    assert figures["verified"]["phrases"] == 4

    # only the token that is too long differs, so the document is another one with the same phrases
    (tmp_path / "1").write_text("z" * 100_000 + " f g h i j")
    figures = run(tmp_path, "--verify").json
    assert (figures["edited"], figures["updates"]) == (1, 0)


@pytest.mark.slow
def test_lower_case_comes_before_splitting(run: Run, values: Values, tmp_path: Path) -> None:
    # lower-case İ contains a combining dot, which is no word character; a final sigma has another lower-case form
    (tmp_path / "file").write_text("İİ ΣΑΣ b c ΣΑΣ", encoding="utf-8")
    run(tmp_path)
    assert values() == expected_of(["İİ ΣΑΣ b c ΣΑΣ"])
    assert "i i σας b" in values()


@pytest.mark.slow
def test_empty_directory_counts_and_missing_one_fails(run: Run, values: Values, tmp_path: Path) -> None:
    root = tmp_path / "root"
    missing = run(root)
    assert missing.code == 1
    assert missing.stderr == f"pgcombine: {root} does not exist: name a directory with text files\n"

    root.mkdir()
    (root / "file").write_text("one two three four")
    assert run(root / "file").stderr.endswith("is not a directory: name a directory with text files\n")
    run(root)
    (root / "file").unlink()
    answer = run(root, "--verify")
    assert answer.json["removed"] == 1
    assert answer.stderr == f"{root} holds no files to count\n"
    assert values() == {}
