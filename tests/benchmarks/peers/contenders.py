"""All contenders, by name. The order is that of the table and the plot."""

from __future__ import annotations

from .by_hand import BASELINE, BY_HAND
from .contender import Contender
from .queues import QUEUES

CONTENDERS: dict[str, Contender] = {contender.name: contender for contender in (*QUEUES, *BY_HAND)}

assert BASELINE in CONTENDERS
