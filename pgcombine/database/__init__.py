"""Access to PostgreSQL: connections, the caller's own transaction, deadlines, and the SQL files."""
