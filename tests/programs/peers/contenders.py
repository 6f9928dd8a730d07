"""All contenders, by name. The order is that of the table and the plot."""

from __future__ import annotations

from .chdb import ChDB
from .contender import Contender
from .ivm import Ivm
from .manual import BASELINE, MANUAL
from .pgmq import Pgmq
from .pgq import PgQ
from .queues import QUEUES

PGMQ = Pgmq()
OUTSIDE = (PgQ(packed=True), PgQ(packed=False), PGMQ, Ivm(), ChDB())
CONTENDERS: dict[str, Contender] = {contender.name: contender for contender in (*QUEUES, *MANUAL, *OUTSIDE)}

assert BASELINE in CONTENDERS
