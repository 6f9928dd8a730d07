"""pgcombine for Spark. This package doesn't import PySpark until it is needed."""

from __future__ import annotations

from pgcombine.spark.errors import explained
from pgcombine.spark.staged import foreach_batch, initialize, staged, write_jdbc
from pgcombine.spark.startup import register, session

__all__ = ["explained", "foreach_batch", "initialize", "register", "session", "staged", "write_jdbc"]
