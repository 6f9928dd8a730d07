"""The example application, which counts the phrases in a directory of texts, and keeps the counts up to date."""
