"""The parts that daemons share, such as reconnecting, sleeping until notified, and printable logs."""
