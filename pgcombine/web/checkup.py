"""The doctor's findings for the pages. If a page needs new findings, a background thread runs the doctor."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from pgcombine.doctor.examine import examine
from pgcombine.doctor.findings import Finding, Level

GOOD_FOR = 60.0  # seconds after a run of the doctor until a page's request for findings starts another run
YOUNGEST = 5.0  # for so many seconds after a run, no request starts another run

log = logging.getLogger("pgcombine.web")


@dataclass(frozen=True)
class Result:
    """The findings, worst first, and the time at which the doctor ended."""

    findings: Sequence[Finding]
    at: datetime
    states: frozenset[str] = frozenset()  # the states for which the run was started (see Checkup.result)

    @property
    def counts(self) -> Mapping[str, int]:
        """The number of findings of each level."""
        counted = Counter(finding.level for finding in self.findings)
        return {level.value: counted[level] for level in Level}


class Checkup:
    """Runs the doctor in a background thread, and keeps its last result."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._result: Result | None = None
        self._states: frozenset[str] = frozenset()  # the last states for which a run was started
        self._tried_at = float("-inf")

    def result(self, states: frozenset[str] | None = None, *, again: bool = False) -> tuple[Result | None, bool]:
        """Return the last result, or None if there is none yet, and whether the doctor is running.

        Starts the doctor if it isn't running and its last run ended more than GOOD_FOR seconds ago. If ``again`` is
        True, or if ``states`` differs from those of the last run, more than YOUNGEST seconds are enough.
        ``states`` names the alarms and the paused queues that the page shows now, or is None if they aren't known.
        """
        with self._lock:
            running = self._thread is not None and self._thread.is_alive()
            again = again or (states is not None and states != self._states)
            if not running and time.monotonic() - self._tried_at > (YOUNGEST if again else GOOD_FOR):
                self._states = self._states if states is None else states
                self._thread = threading.Thread(target=self._run, name="pgcombine-web-doctor", daemon=True)
                self._thread.start()
                running = True
            return self._result, running

    def _run(self) -> None:
        order = list(Level)
        try:
            found = sorted(examine(self._dsn), key=lambda finding: -order.index(finding.level))
        except Exception:
            log.exception("web.doctor_failed")
            found = []
        with self._lock:
            self._tried_at = time.monotonic()
            if found:
                self._result = Result(found, datetime.now(UTC), self._states)
