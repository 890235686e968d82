"""A throw-away PostgreSQL server on loopback, for the tests that need one."""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.services import NotInstalled, require_package, require_program

SUPERUSER = "idios"


class PostgresqlServer:
    """A cluster of its own in a temporary directory; `url` names its default database."""

    def __init__(self, *, fsync: bool = False) -> None:
        require_package("psycopg", "postgres")
        self._programs = programs()
        self._account = unprivileged_account()
        self._password = secrets.token_hex(16)
        self._fsync = fsync
        self._directory = Path(tempfile.mkdtemp(prefix="idios-postgresql-"))
        self._process: subprocess.Popen[bytes] | None = None
        self.port = free_port()
        try:
            self._initialise()
            self.start()
        except BaseException:
            self.close()
            raise

    @property
    def url(self) -> str:
        return f"postgresql://{SUPERUSER}:{self._password}@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        with (self._directory / "log").open("ab") as log:
            self._process = self._popen(
                "postgres",
                ["-D", str(self._data), "-p", str(self.port), "-k", "", "-h", "127.0.0.1"],
                settings={
                    "fsync": "on" if self._fsync else "off",
                    "max_connections": "100",
                    "shared_buffers": "64MB",
                },
                output=log,
            )
        self._wait()

    def stop(self, *, crash: bool = False) -> None:
        """Shut the server down, or let it crash: no checkpoint, no goodbye to its clients."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGQUIT if crash else signal.SIGINT)
        self._process.wait(30)
        self._process = None

    def close(self) -> None:
        self.stop()
        shutil.rmtree(self._directory, ignore_errors=True)

    @property
    def _data(self) -> Path:
        return self._directory / "data"

    def _initialise(self) -> None:
        password_file = self._directory / "password"
        password_file.write_text(self._password)
        if self._account is not None:
            for path in (self._directory, password_file):
                shutil.chown(path, self._account, self._account)
        initdb = self._popen(
            "initdb",
            [
                *("-D", str(self._data), "-U", SUPERUSER, "--pwfile", str(password_file)),
                *("--auth", "scram-sha-256", "--encoding", "UTF8", "--locale", "C", "--no-sync"),
            ],
            output=subprocess.PIPE,
        )
        output, _ = initdb.communicate(timeout=60)
        if initdb.returncode:
            raise RuntimeError(f"initdb failed: {output.decode(errors='replace')}")

    def _popen(
        self,
        program: str,
        arguments: Sequence[str],
        *,
        output: object,
        settings: dict[str, str] | None = None,
    ) -> subprocess.Popen[bytes]:
        options = [part for name, value in (settings or {}).items() for part in ("-c", f"{name}={value}")]
        identity = {} if self._account is None else {"user": self._account, "group": self._account}
        return subprocess.Popen(
            [str(self._programs / program), *arguments, *options],
            cwd=self._directory,
            env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            extra_groups=[] if identity else None,
            **identity,
        )

    def _wait(self) -> None:
        import psycopg

        deadline = time.monotonic() + 30
        while True:
            try:
                psycopg.connect(self.url, connect_timeout=5).close()
                return
            except psycopg.OperationalError:
                if time.monotonic() > deadline or (self._process and self._process.poll() is not None):
                    log = (self._directory / "log").read_text(errors="replace")
                    raise RuntimeError(f"the server did not start: {log}") from None
                time.sleep(0.05)


def programs() -> Path:
    """The directory of initdb and postgres."""
    directory = Path(require_program("initdb")).resolve().parent
    if not (directory / "postgres").exists():
        raise NotInstalled("PostgreSQL's server programs are not installed (.ci/services installs them)")
    return directory


def unprivileged_account() -> str | None:
    """Whom the server runs as: PostgreSQL refuses root, so root lends it the account of the package."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            pwd.getpwnam(name)
        except KeyError:
            continue
        return name
    raise NotInstalled("root cannot run PostgreSQL, and there is no account to run it as")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
