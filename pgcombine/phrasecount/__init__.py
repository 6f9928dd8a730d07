"""The example application: it counts the phrases in a directory of texts, and keeps the counts up to date."""
