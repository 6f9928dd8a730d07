"""A program that writes a frame: ``python driver.py jdbc|copy DSN``."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from frames import frame, write

from pgcombine.spark import session

if __name__ == "__main__":
    write(sys.argv[1], frame(session("driver", master="local[2]")), sys.argv[2], "r")
