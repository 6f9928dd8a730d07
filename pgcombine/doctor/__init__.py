"""The doctor: it checks a database, its server, its queues and this machine, and returns findings."""
