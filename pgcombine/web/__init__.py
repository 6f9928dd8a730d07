"""The page: ``pgcombine web`` shows a database's queues to people, and lets them act if it was started so."""
