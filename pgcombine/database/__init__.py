"""What talks to PostgreSQL: connections, the caller's own transaction, deadlines, and the files of SQL."""
