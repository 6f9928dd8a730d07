"""The examples' own tests run as their users run them: by pytest in a process of its own."""

collect_ignore = ["shop"]
