"""A real Spark cluster on loopback: a standalone master, worker processes and a Spark Connect server."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.services import require_package
from tests.services.postgresql import free_port
from tests.services.spark import SHORT_LIVED, java

HOST = "127.0.0.1"
MASTER, WORKER = "org.apache.spark.deploy.master.Master", "org.apache.spark.deploy.worker.Worker"
CONNECT = "org.apache.spark.sql.connect.service.SparkConnectServer"
OPENED = (
    *("java.base/java.lang", "java.base/java.lang.invoke", "java.base/java.lang.reflect", "java.base/java.io"),
    *("java.base/java.net", "java.base/java.nio", "java.base/java.util", "java.base/java.util.concurrent"),
    *("java.base/java.util.concurrent.atomic", "java.base/jdk.internal.ref", "java.base/sun.nio.ch"),
    *("java.base/sun.nio.cs", "java.base/sun.security.action", "java.base/sun.util.calendar"),
)
"""What Spark opens of Java 17 when its own scripts start it."""


class SparkProcess:
    """One Java process of a cluster."""

    def __init__(self, folder: Path, name: str, main: str, *arguments: str, settings: dict[str, str] | None = None):
        self.log = folder / f"{name}.log"
        options = ["-Xmx512m", *SHORT_LIVED.split(), *(f"--add-opens={package}=ALL-UNNAMED" for package in OPENED)]
        options += [f"-D{key}={value}" for key, value in (settings or {}).items()]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [java(), "-cp", f"{spark_home()}/jars/*", *options, main, *arguments],
                cwd=folder,
                env=os.environ
                | {"SPARK_HOME": str(spark_home()), "SPARK_SCALA_VERSION": scala_version(), "SPARK_LOCAL_IP": HOST},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def wait_for(self, said: str, seconds: float = 120) -> None:
        self._wait(lambda: said in self.log.read_text(errors="replace"), seconds)

    def wait_for_port(self, port: int, seconds: float = 120) -> None:
        def listens() -> bool:
            with socket.socket() as probe:
                return probe.connect_ex((HOST, port)) == 0

        self._wait(listens, seconds)

    def _wait(self, is_so: Callable[[], bool], seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not is_so():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{self.log.stem} did not start: {self.log.read_text(errors='replace')[-4000:]}")
            time.sleep(0.1)

    def kill(self) -> None:
        """SIGKILL, for the executors that it started too: they are in its session."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(30)


class StandaloneCluster:
    """A master and its workers, of one core and some memory each; ``url`` is the master's."""

    def __init__(self, workers: int = 2, memory: str = "1g") -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="idios-spark-"))
        self._memory = memory
        self.port = free_port()
        self.url = f"spark://{HOST}:{self.port}"
        self.workers: list[SparkProcess] = []
        self.processes: list[SparkProcess] = []
        try:
            self.master = SparkProcess(
                *(self._folder, "master", MASTER, "--host", HOST, "--port", str(self.port)),
                *("--webui-port", str(free_port())),
                settings={"spark.master.rest.enabled": "false"},
            )
            self.processes.append(self.master)
            self.master.wait_for_port(self.port)
            for _ in range(workers):
                self.add_worker()
            for worker in self.workers:
                worker.wait_for("Successfully registered with master")
        except BaseException:
            self.close()
            raise

    def add_worker(self) -> SparkProcess:
        """One more worker, which may not have registered yet."""
        name = f"worker-{len(self.workers)}"
        worker = SparkProcess(
            *(self._folder, name, WORKER, "--host", HOST, "--port", str(free_port()), "--webui-port", str(free_port())),
            *("--cores", "1", "--memory", self._memory, "--work-dir", str(self._folder / f"{name}-work"), self.url),
        )
        self.workers.append(worker)
        self.processes.append(worker)
        return worker

    def close(self) -> None:
        for process in reversed(self.processes):
            process.kill()
        shutil.rmtree(self._folder, ignore_errors=True)


class ConnectServer:
    """Spark Connect on this machine; ``url`` is its address."""

    def __init__(self, master: str = "local[2]") -> None:
        for package in ("grpc", "grpc_status", "google"):
            require_package(package, "spark-connect")
        self._folder = Path(tempfile.mkdtemp(prefix="idios-spark-connect-"))
        self.port = free_port()
        self.url = f"sc://{HOST}:{self.port}"
        settings = {
            "spark.master": master,
            "spark.app.name": "connect",
            "spark.ui.enabled": "false",
            "spark.driver.host": HOST,
            "spark.driver.bindAddress": HOST,
            "spark.sql.shuffle.partitions": "2",
            "spark.connect.grpc.binding.address": HOST,
            "spark.connect.grpc.binding.port": str(self.port),
            "spark.sql.warehouse.dir": str(self._folder / "warehouse"),
        }
        try:
            self.process = SparkProcess(self._folder, "connect", CONNECT, settings=settings)
            self.process.wait_for_port(self.port)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        if hasattr(self, "process"):
            self.process.kill()
        shutil.rmtree(self._folder, ignore_errors=True)


def spark_home() -> Path:
    """Where pyspark keeps the classes of Spark."""
    import pyspark

    return Path(pyspark.__file__).parent


def scala_version() -> str:
    """Which Scala the classes are built with; a worker must be told, to start executors."""
    (core,) = (spark_home() / "jars").glob("spark-core_*.jar")
    return core.name.removeprefix("spark-core_").partition("-")[0]
