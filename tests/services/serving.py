"""A real `idios serve` in a process of its own, for the tests and benchmarks that need one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx2

from tests.services.postgresql import free_port


class Serving:
    """A server on a loopback port; it can be told to stop, or killed."""

    def __init__(self, config: Path, *options: str, port: int | None = None, environment: dict[str, str] | None = None):
        self.port = port or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._config = config
        self._options = options
        self._environment = os.environ | (environment or {})
        self.log = config.parent / f"server-{self.port}.log"
        self.process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as log:
            return subprocess.Popen(
                [
                    *(sys.executable, "-m", "idios", "serve", "--config", str(self._config)),
                    *("--port", str(self.port), *self._options),
                ],
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self._environment,
                start_new_session=True,
            )

    def wait(self, seconds: float = 60, *, verify: bool = True, ready: bool = True) -> Serving:
        """Until it can answer, or only until it listens."""
        scheme = "https" if "--tls-cert" in self._options else "http"
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise RuntimeError(f"the server ended: {self.log.read_text()}")
            try:
                found = httpx2.get(f"{scheme}://127.0.0.1:{self.port}/readyz", verify=verify, timeout=5)
                if found.status_code == 200 or not ready:
                    return self
            except httpx2.TransportError:
                time.sleep(0.05)
        raise RuntimeError(f"the server did not get ready: {self.log.read_text()}")

    def kill(self) -> None:
        """SIGKILL for the server and its workers."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(10)

    def restart(self, *, ready: bool = True) -> None:
        """Start again at the same address, and wait until it can answer, or only until it listens."""
        self.process = self._start()
        self.wait(ready=ready)

    def stop(self, seconds: float = 60) -> int:
        """SIGTERM; gives the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(seconds)

    def pids(self) -> list[int]:
        """The server's processes, workers included."""
        found = [self.process.pid]
        for status in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = status.read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == self.process.pid:
                found.append(int(status.parent.name))
        return found

    def memory(self) -> int:
        """Bytes that its processes hold, all together."""
        total = 0
        for pid in self.pids():
            try:
                text = Path(f"/proc/{pid}/status").read_text()
            except OSError:
                continue
            total += sum(int(line.split()[1]) for line in text.splitlines() if line.startswith("VmRSS")) * 1024
        return total

    def processor_seconds(self) -> float:
        """Seconds that its processes have computed, on all cores together."""
        ticks = 0
        for pid in self.pids():
            try:
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def __enter__(self) -> Serving:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.kill()
