"""What may be wrong with a database, a role, a machine or a queue, as a list of findings."""
