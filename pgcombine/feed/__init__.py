"""Feeds: the changes of a queue, which consumers read at their own pace."""
