"""The parts of a queue that a caller uses: enqueue, read, wait, initialize, and the caller's own observers."""
