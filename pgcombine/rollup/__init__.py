"""Rollups: aggregates of tables by key."""
