"""The parts that daemons share: reconnecting, sleeping until notified, states of destinations, printable logs."""
