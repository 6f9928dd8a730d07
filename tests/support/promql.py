"""The metrics and labels in expressions of Prometheus, and a check of their syntax."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

import yaml

from support.needs import require_program


def metrics_of(expression: str) -> set[str]:
    """The names that begin with ``pgcombine_`` or ``process_``, including suffixes such as ``_bucket``."""
    return set(re.findall(r"\b(?:pgcombine|process)_\w+", expression))


def labels_of(expression: str) -> set[str]:
    """The labels that an expression compares by ``=`` or ``=~``, or lists after ``by`` or ``on``."""
    selectors = [name for part in re.findall(r"\{([^}]*)\}", expression) for name in re.findall(r"(\w+)\s*=", part)]
    groups = [name for part in re.findall(r"\b(?:by|on) \(([^)]*)\)", expression) for name in part.split(",")]
    return {name.strip() for name in [*selectors, *groups] if name.strip()}


def promtool(*arguments: object) -> None:
    """Run ``promtool``. Raises AssertionError with its output if it fails."""
    done = subprocess.run(
        [require_program("promtool"), *map(str, arguments)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def check_expressions(expressions: Iterable[str], directory: Path) -> None:
    """Raise AssertionError if one of these expressions of a Grafana dashboard isn't valid for Prometheus."""
    filled = [
        one.replace("$__rate_interval", "5m").replace("$queue", ".*").replace("$job", ".*") for one in expressions
    ]
    assert not [one for one in filled if "$" in one]
    file = directory / "rules.yml"
    rules = [{"record": f"checked:{number}", "expr": one} for number, one in enumerate(filled)]
    file.write_text(yaml.safe_dump({"groups": [{"name": "checked", "rules": rules}]}), encoding="utf-8")
    promtool("check", "rules", file)
