"""pgcombine for Spark. Importing it doesn't import PySpark; what it offers does when it is called."""

from __future__ import annotations

from pgcombine.spark.startup import session

__all__ = ["session"]
