"""Request metrics, health and readiness from a process over HTTP, and parse the answers."""

from __future__ import annotations

import re
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TypeAlias

from prometheus_client.parser import text_string_to_metric_families

from pgcombine.metrics import names
from pgcombine.metrics.server import ProcessMetrics
from pgcombine.runtime.heartbeat import Heartbeat
from support.cli import start_cli

DATABASE = {gauge.name for gauge in names.OF_THE_DATABASE}
Samples: TypeAlias = Mapping[tuple[str, frozenset[tuple[str, str]]], float]


def get(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def samples(text: str) -> Samples:
    """The samples in a text of metrics, by name and labels."""
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(found: Samples, name: str, **labels: str) -> float | None:
    """The sample of ``pgcombine_<name>`` with exactly these labels, or None."""
    return found.get((f"pgcombine_{name}", frozenset(labels.items())))


def families(text: str) -> dict[str, tuple[str, frozenset[str]]]:
    """pgcombine's metrics with samples: name → type and labels without ``le``. A counter's name ends in ``_total``."""
    found = {}
    for family in text_string_to_metric_families(text):
        if family.name.startswith("pgcombine_") and family.samples:
            name = f"{family.name}_total" if family.type == "counter" else family.name
            labels = frozenset(label for sample in family.samples for label in sample.labels)
            found[name] = (family.type, labels - {"le"})
    return found


@contextmanager
def served(dsn: str, *heartbeats: Heartbeat, metrics: ProcessMetrics | None = None) -> Iterator[int]:
    """Serve metrics in this process during the block, and yield the port."""
    with (metrics or ProcessMetrics("0")).served(dsn, heartbeats, port=0, host="127.0.0.1") as port:
        yield port


@contextmanager
def daemon(*args: object) -> Iterator[tuple[int, subprocess.Popen[str]]]:
    """Run ``pgcombine ARGS`` as another process during the block. Yields the port of its metrics, and the process."""
    with start_cli(*args, "--metrics-port", 0) as process:
        assert process.stdout is not None
        lines: list[str] = []
        while not (found := re.search(r"metrics\.start host=127\.0\.0\.1 port=(\d+)", "".join(lines[-1:]))):
            lines.append(process.stdout.readline())
            assert lines[-1], "".join(lines)
        yield int(found[1]), process


def scrape(port: int) -> Samples:
    """The samples of ``/metrics``. Raises AssertionError if the status isn't 200."""
    status, text = get(port, "/metrics")
    assert status == 200
    return samples(text)


def has_figures(port: int) -> bool:
    """Whether the process that listens on ``port`` serves all metrics of the database."""
    return families(get(port, "/metrics")[1]).keys() >= DATABASE
