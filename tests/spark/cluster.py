"""A Spark standalone cluster on this machine: a master, and two workers at different addresses.

Spark repeats tasks speculatively only on another host, so the two workers need two addresses. Each process has its own
directory for temporary files, as if it ran on another machine.
"""

from __future__ import annotations

import re
import subprocess
from contextlib import suppress
from pathlib import Path

import psutil
from support import eventually
from support.cli import environment

WORKERS = 2
CORES = 2  # cores of each worker, which runs one task on each core
_SMALL = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
SETTINGS = {
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": _SMALL,
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.quantile": "0.75",  # slow tasks may be repeated after three of four tasks have ended
    "spark.speculation.multiplier": "1.01",
    "spark.speculation.minTaskRuntime": "100ms",
}


class Cluster:
    """A running cluster, which ``close`` ends. ``url`` is the address of the master."""

    def __init__(self, directory: Path) -> None:
        import pyspark

        from pgcombine.spark.java import find_java, java_home

        self._directory = directory
        self._java = java_home(find_java(), directory / "java")
        self._spark = Path(pyspark.__file__).parent
        self._processes: list[subprocess.Popen[bytes]] = []
        try:
            log = self._start("master", "127.0.0.1", "master.Master")
            self.url = eventually(lambda: _found(log, r"Starting Spark master at (\S+)"), timeout=120, what="master")
            logs = []
            for number in range(2, WORKERS + 2):
                size = ("--cores", str(CORES), "--memory", "600m", "--work-dir", str(directory / f"work{number}"))
                logs.append(self._start(f"worker{number}", f"127.0.0.{number}", "worker.Worker", *size, self.url))
            for log in logs:
                eventually(lambda log=log: _found(log, "(Successfully registered)"), timeout=120, what="worker")
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Kill the master and the workers, with their child processes such as executors."""
        family = []
        for started in self._processes:
            with suppress(psutil.NoSuchProcess):
                process = psutil.Process(started.pid)
                family += [process, *process.children(recursive=True)]
        for process in family:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        for started in self._processes:
            started.wait()

    def _start(self, name: str, host: str, program: str, *arguments: str) -> Path:
        temporary = self._directory / f"tmp-{name}"
        temporary.mkdir()
        settings = {
            "JAVA_HOME": self._java,
            "SPARK_HOME": self._spark,
            "SPARK_LOCAL_IP": host,
            "SPARK_LOCAL_DIRS": temporary,
            "SPARK_DAEMON_MEMORY": "128m",
            "SPARK_DAEMON_JAVA_OPTS": f"{_SMALL} -Djava.io.tmpdir={temporary}",
            "TMPDIR": temporary,
        }
        command = [
            *(str(self._spark / "bin" / "spark-class"), f"org.apache.spark.deploy.{program}"),
            *("--host", host, "--port", "0", "--webui-port", "0", *arguments),
        ]
        log = self._directory / f"{name}.log"
        with log.open("wb") as output:
            self._processes.append(
                subprocess.Popen(
                    command, env=environment(settings), stdin=subprocess.DEVNULL, stdout=output, stderr=output
                )
            )
        return log


def _found(log: Path, pattern: str) -> str:
    found = re.search(pattern, log.read_text(errors="replace"))
    return found[1] if found else ""


def executor_of(pid: int) -> int:
    """Return the process id of the executor: the process ``pid`` or its nearest parent that is a Java process."""
    process = psutil.Process(pid)
    return next(one.pid for one in [process, *process.parents()] if one.name() == "java")


def kill(pid: int) -> None:
    """Kill a process with SIGKILL, and wait for its end."""
    process = psutil.Process(pid)
    process.kill()

    def is_gone() -> bool:
        try:
            return process.status() == psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return True

    eventually(is_gone, what="the process is gone")
