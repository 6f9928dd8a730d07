"""The shop's tests get their databases from the plugin ``pgcombine.testing``."""

pytest_plugins = ["pgcombine.testing"]
