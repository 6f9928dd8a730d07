"""The options for ``/metrics``, ``/healthz`` and ``/readyz`` of commands that run until they are stopped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

import pgcombine
from pgcombine.errors import ConfigError, PassError, pip_install
from pgcombine.runtime.heartbeat import Heartbeat
from pgcombine.worker.totals import Pass

if TYPE_CHECKING:  # the import needs the extra ``metrics``
    from pgcombine.metrics.server import ProcessMetrics

LOOPBACK = "127.0.0.1"

MetricsPort = Annotated[
    int | None,
    typer.Option(
        "--metrics-port", min=0, max=65535, help="Serve /metrics, /healthz and /readyz on this port; 0: a free one."
    ),
]
MetricsHost = Annotated[str, typer.Option("--metrics-host", help="The address for --metrics-port.")]


class Metrics:
    """The metrics of this process.

    Without a port, no metrics are served, and prometheus-client isn't imported. With a port, the constructor raises
    ConfigError if prometheus-client isn't installed.
    """

    def __init__(self, port: int | None, host: str) -> None:
        self._port = port or 0
        self._host = host
        self._metrics: ProcessMetrics | None = None
        self.on_pass: Callable[[Pass], None] | None = None
        self.on_failure: Callable[[PassError], None] | None = None
        if port is None:
            return
        try:
            from pgcombine.metrics.server import ProcessMetrics
        except ModuleNotFoundError as error:
            raise ConfigError(f"metrics need prometheus-client: {pip_install('metrics')}") from error
        self._metrics = ProcessMetrics(pgcombine.__version__)
        self.on_pass, self.on_failure = self._metrics.passes.passed, self._metrics.passes.failed

    @contextmanager
    def served(self, dsn: str, *heartbeats: Heartbeat) -> Iterator[None]:
        """Serve the metrics until the end of the block. Raises ConfigError for an unknown host or a taken port."""
        if self._metrics is None:
            yield
            return
        with self._metrics.served(dsn, heartbeats, port=self._port, host=self._host):
            yield
