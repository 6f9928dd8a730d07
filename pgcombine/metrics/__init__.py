"""The metrics of workers and other daemons, and files for Prometheus and Grafana."""
