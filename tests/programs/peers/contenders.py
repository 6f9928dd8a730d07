"""All contenders by name, in the order of the table and the plot.

In the figures of a table's sums, the contenders of ``OF_SOURCE`` replace those with the same names.
"""

from __future__ import annotations

from .chdb import ChDB
from .contender import Contender
from .ivm import Ivm
from .manual import BASELINE, MANUAL
from .pgmq import Pgmq
from .pgq import PgQ
from .queues import QUEUES
from .source import OF_SOURCE, Rollup

PGMQ = Pgmq()
OUTSIDE = (PgQ(packed=True), PgQ(packed=False), PGMQ, Ivm(), ChDB())
ROLLUPS = tuple(contender for contender in OF_SOURCE if isinstance(contender, Rollup))
CONTENDERS: dict[str, Contender] = {contender.name: contender for contender in (*QUEUES, *ROLLUPS, *MANUAL, *OUTSIDE)}

assert BASELINE in CONTENDERS
