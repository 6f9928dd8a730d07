"""A soak test: writers and daemons run for half an hour under kills; at the end the totals must be exact.

``installation`` has the servers and the daemons, ``load`` writes and computes the expected totals, ``trouble`` kills
processes, ``watch`` measures, ``charts`` draws, and ``run`` does a whole run.
``python -m tests.programs.soak --minutes 30`` prints a report.
"""
