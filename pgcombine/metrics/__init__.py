"""Metrics of the processes that work all day, for Prometheus; and files for Grafana and Prometheus."""
