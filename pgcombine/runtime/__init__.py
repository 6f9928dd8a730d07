"""The parts that all daemons share: reconnecting, sleeping until notified, states of destinations, printable logs."""
