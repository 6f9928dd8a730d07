"""The state of each queue, and the verdict on all of them, with which the overview begins."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pgcombine.web.figures import Part
from pgcombine.web.texts import counted

BEHIND = 60.0  # seconds; a queue with a greater lag is "behind"
WAITING = 10.0  # seconds; a queue with a greater lag, up to BEHIND, is "waiting"
# worst first; "unattended" is a queue that is behind, and that no connected worker serves
STATES = ("failing", "unattended", "quarantine", "behind", "paused", "waiting", "unknown", "well")
TROUBLES = STATES[:4]
# What the overview says first of queues in a state, of destinations, and of transactions: how bad it is, a sentence
# about one, and a sentence about several.
SENTENCES = {
    "failing": ("error", "{} is failing", "{} queues are failing"),
    "unattended": ("error", "{} has no worker", "{} queues have no worker"),
    "quarantine": ("error", "{} has quarantined keys", "{} queues have quarantined keys"),
    "behind": ("error", "{} is behind", "{} queues are behind"),
    "down": ("error", "The destination of {} is down", "The destinations of {} exports are down"),
    "paused": ("warning", "{} is paused, and updates wait", "{} queues are paused, and updates wait"),
    "connecting": ("warning", "A worker waits for a connection", "{} workers wait for connections"),
    "suspect": ("warning", "The destination of {} may be down", "The destinations of {} exports may be down"),
    "snapshot": ("warning", "An old transaction holds space", "{} old transactions hold space"),
    "waiting": ("info", "{} lags by more than 10 s", "{} queues lag by more than 10 s"),
    "unknown": ("info", "{} is locked and can't be counted", "{} queues are locked and can't be counted"),
    "resting": ("info", "{} is paused", "{} queues are paused"),
}
LEVELS = ("error", "warning", "info", "ok")


def state_of(row: Mapping[str, Any], served: bool = True) -> str:
    """Return the state of a queue, one of STATES, from its row of ``web_queues``.

    ``served`` says whether a connected worker works on the queue.
    """
    if row["failing_buckets"]:
        return "failing"
    behind = row["lag_seconds"] > BEHIND and not row["paused"]
    if behind and not served:
        return "unattended"
    if row["quarantined_keys"]:
        return "quarantine"
    if row["paused"]:
        return "paused"
    if behind:
        return "behind"
    if row["pending_at"] is None:
        return "unknown"
    return "waiting" if row["lag_seconds"] > WAITING else "well"


class Verdict(NamedTuple):
    """What the overview says first: the worst, and what is wrong besides. ``level`` is one of LEVELS."""

    level: str
    text: str
    also: Sequence[str] = ()


def verdict(rows: Sequence[Mapping[str, Any]], found: Mapping[str, Part], errors: int = 0) -> Verdict:
    """Return the verdict on all queues.

    ``rows`` have a ``state`` each. ``found`` has the parts ``workers``, ``snapshots`` and ``down``. ``errors`` is the
    number of the doctor's errors.
    """
    names: defaultdict[str, list[str]] = defaultdict(list)
    for row in rows:
        names["resting" if row["state"] == "paused" and not row["pending"] else row["state"]].append(row["queue"])
    for one in found["down"].rows:
        names[one["state"]].append(one["export"])
    names["connecting"] = [one["worker"] for one in found["workers"].rows if one["state"] == "connecting"]
    names["snapshot"] = [one["name"] for one in found["snapshots"].rows]
    told = [
        (level, single.format(names[state][0]) if len(names[state]) == 1 else several.format(len(names[state])))
        for state, (level, single, several) in SENTENCES.items()
        if names[state]
    ]
    if is_alone(found["workers"]) and rows and not names["unattended"]:
        told.append(("warning", "No worker is connected"))
    if errors and not any(level == "error" for level, _ in told):  # else they are probably about the same
        told.append(("error", f"The doctor finds {counted(errors, 'error')}"))
    if told:
        told.sort(key=lambda one: LEVELS.index(one[0]))
        return Verdict(told[0][0], told[0][1], [text for _, text in told[1:]])
    if not rows:
        return Verdict("info", "There is no queue yet")
    return Verdict("ok", f"{rows[0]['queue']} is well" if len(rows) == 1 else f"All {len(rows)} queues are well")


def is_alone(workers: Part) -> bool:
    """Whether no worker is connected."""
    return not workers.rows and not workers.trouble


def is_served(queue: str, workers: Part) -> bool:
    """Whether a connected worker works on the queue, or may do so."""
    return bool(workers.trouble) or any(one["queues"] is None or queue in one["queues"] for one in workers.rows)
