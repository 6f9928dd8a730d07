"""Throw-away databases for the shop's tests."""

pytest_plugins = ["pgcombine.testing"]
