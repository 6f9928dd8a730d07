"""The versions of what pgcombine names and doesn't install by pip: a jar, and container images.

``pyproject.toml`` has the Python packages. What else names one of these is compared by ``tests/test_pins.py``.
"""

JDBC_DRIVER = "42.7.13"  # org.postgresql:postgresql
POSTGRES_IMAGE = "postgres:18"
OLDEST_POSTGRES_IMAGE = "postgres:15"
PYTHON_IMAGE = "python:3.12-slim"
PROMETHEUS_IMAGE = "prom/prometheus:v3.13.3"
GRAFANA_IMAGE = "grafana/grafana:13.2.0"
