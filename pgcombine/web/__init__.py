"""The web pages of ``pgcombine web``."""
