"""``tests/README.md`` lists the test files whose tests are all slow."""

from __future__ import annotations

import ast
import re
from pathlib import Path

HERE = Path(__file__).parents[1]


def marks_slow(node: ast.AST) -> bool:
    return "mark.slow" in ast.unparse(node)


def wholly_slow(module: ast.Module) -> bool:
    """Whether the module, or each of its test functions, has the mark ``slow``."""
    if any(
        isinstance(node, ast.Assign) and "pytestmark" in ast.unparse(node.targets[0]) and marks_slow(node.value)
        for node in module.body
    ):
        return True
    tests = [node for node in module.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]
    return all(any(ast.unparse(mark) == "pytest.mark.slow" for mark in test.decorator_list) for test in tests)


def test_files_without_a_fast_test_are_listed() -> None:
    (listed,) = re.findall(
        r"^Files without a fast test: (.*)\.$", (HERE / "README.md").read_text(encoding="utf-8"), re.M
    )
    slow = [file for file in HERE.rglob("test_*.py") if wholly_slow(ast.parse(file.read_text(encoding="utf-8")))]
    assert re.findall(r"`(.*?)`", listed) == sorted(file.relative_to(HERE).as_posix() for file in slow)
