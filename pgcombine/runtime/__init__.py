"""What every daemon needs: connecting again, sleeping until notified, the states of destinations, lines for a log."""
