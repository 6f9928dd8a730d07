"""Rollups: aggregates of tables that are right in every snapshot."""
