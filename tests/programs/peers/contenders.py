"""All contenders, by name. The order is that of the table and the plot."""

from __future__ import annotations

from .by_hand import BASELINE, BY_HAND
from .chdb import ChDB
from .contender import Contender
from .ivm import Ivm
from .pgmq import Pgmq
from .pgq import PgQ
from .queues import QUEUES

PGMQ = Pgmq()
OUTSIDE = (PgQ(packed=True), PgQ(packed=False), PGMQ, Ivm(), ChDB())
CONTENDERS: dict[str, Contender] = {contender.name: contender for contender in (*QUEUES, *BY_HAND, *OUTSIDE)}

assert BASELINE in CONTENDERS
