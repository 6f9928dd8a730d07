"""The public names. The package ``pgcombine`` imports this module when a program first uses one of them."""

from pgcombine.budget import Budget as Budget
from pgcombine.errors import PgCombineError as PgCombineError
from pgcombine.export.entries import Entry as Entry
from pgcombine.export.entries import Exporter as Exporter
from pgcombine.export.queue import ExportQueue as ExportQueue
from pgcombine.export.worker import ExportWorker as ExportWorker
from pgcombine.feed.feed import Feed as Feed
from pgcombine.handoff.replayer import Replayer as Replayer
from pgcombine.handoff.replicated import ReplicatedQueue as ReplicatedQueue
from pgcombine.queue.callbacks import Change as Change
from pgcombine.queue.callbacks import ChangeStream as ChangeStream
from pgcombine.queue.combine_queue import CombineQueue as CombineQueue
from pgcombine.rollup.rollup import Rollup as Rollup
from pgcombine.worker.drain import drain as drain
from pgcombine.worker.worker import Worker as Worker
