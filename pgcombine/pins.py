"""The versions of a jar and of container images.

``pyproject.toml`` has the versions of Python packages. Other files repeat some of the versions here, and
``tests/test_pins.py`` checks that they are equal.
"""

JDBC_DRIVER = "42.7.13"  # org.postgresql:postgresql
POSTGRES_IMAGE = "postgres:18"
OLDEST_POSTGRES_IMAGE = "postgres:15"
PYTHON_IMAGE = "python:3.12-slim"
PROMETHEUS_IMAGE = "prom/prometheus:v3.13.3"
GRAFANA_IMAGE = "grafana/grafana:13.2.0"
