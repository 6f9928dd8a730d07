"""pgcombine for Spark. Importing it doesn't import PySpark; what it offers does when it is called."""

from __future__ import annotations

from pgcombine.spark.initial import initialize
from pgcombine.spark.staged import foreach_batch, staged, write_jdbc
from pgcombine.spark.startup import register, session

__all__ = ["foreach_batch", "initialize", "register", "session", "staged", "write_jdbc"]
