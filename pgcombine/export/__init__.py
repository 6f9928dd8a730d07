"""Export queues: what passes change is delivered to other systems."""
