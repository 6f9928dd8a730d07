"""Metrics of the processes that work all day, for Prometheus; and files for Grafana, Prometheus and sql_exporter."""
