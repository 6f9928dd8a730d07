"""A soak test: writers and all daemons run at once for half an hour under kills; at the end each total is exact.

``installation`` has the servers and the daemons, ``load`` writes and computes the expected totals, ``trouble`` kills
processes, ``watch`` measures, ``charts`` draws, and ``run`` runs all of these.
``python -m tests.programs.soak --minutes 30`` prints a report.
"""
