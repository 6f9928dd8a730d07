"""The example application: it counts phrases in a directory of texts, once and again as files change."""
