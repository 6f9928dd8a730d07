"""pgcombine: a PostgreSQL-backed combine queue."""
