"""The parts that all daemons share: connect again, sleep until notified, states of destinations, printable log
lines.
"""
