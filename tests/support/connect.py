"""Run a Spark Connect server in another process."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.wait import eventually


@contextmanager
def connect_server(directory: Path) -> Iterator[str]:
    """Run a server during the block and yield its ``sc://`` address. Its files are below the empty ``directory``."""
    import pyspark

    from pgcombine.spark.java import find_java, java_home
    from pgcombine.spark.jdbc_driver import find_driver

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "3",
        "spark.sql.warehouse.dir": (directory / "warehouse").as_uri(),
    }
    if jar := find_driver():
        settings["spark.jars"] = str(jar)
    environment = os.environ | {
        "JAVA_HOME": str(java_home(find_java(), directory / "java")),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    command = [str(Path(pyspark.__file__).parent / "bin" / "spark-submit"), "--master", "local[2]"]
    command += [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
    log = directory / "server.log"
    with log.open("w") as output:
        process = subprocess.Popen(command, env=environment, cwd=directory, stdout=output, stderr=output)
    try:

        def answers() -> bool:
            assert process.poll() is None, log.read_text()
            with socket.socket() as client:
                return client.connect_ex(("127.0.0.1", port)) == 0

        eventually(answers, timeout=180, what="the Spark Connect server answers")
        yield f"sc://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(timeout=60)
