"""The web pages of ``pgcombine web``. They show a database's queues; with ``--allow-actions`` readers can act, too."""
