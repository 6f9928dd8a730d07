"""Serves metrics of workers and other daemons to Prometheus; has files for Grafana and Prometheus."""
