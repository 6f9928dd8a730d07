"""A soak test: writers and all daemons run at once under kills; at the end each total must be exact.

``installation`` has the servers and the daemons, ``load`` writes and computes the expected totals, ``trouble`` kills
processes, ``watch`` measures, ``charts`` draws, and ``run`` does a whole run.
``python -m tests.programs.soak --minutes 30`` prints a report.
"""
