"""A soak: everything runs at once for half an hour, things are killed, and at the end each total is exact.

``installation`` has the servers and the daemons, ``load`` writes and knows what the totals must be, ``trouble`` kills,
``watch`` measures, ``charts`` draws, ``run`` puts it together.
``python -m tests.programs.soak --minutes 30`` prints a report.
"""
