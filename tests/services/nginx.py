"""A real nginx that runs deploy/nginx.conf on loopback, for the tests that need one."""

from __future__ import annotations

import re
import socket
import ssl
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from tests.services import require_program
from tests.services.postgresql import free_port

SHIPPED = Path(__file__).parents[2] / "deploy" / "nginx.conf"

SURROUNDINGS = """
daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log {folder}/error.log info;
events {{ worker_connections 64; }}
http {{
    access_log {folder}/access.log;
    gzip on;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    scgi_temp_path {folder}/scgi;
    uwsgi_temp_path {folder}/uwsgi;
    include {folder}/idios.conf;
}}
"""
"""What Debian's own configuration puts around it, as far as it matters; its paths need no rights here."""


class Nginx:
    """The shipped configuration in front of a server on loopback; only its ports and paths are others.

    ``changed`` replaces further pieces of it, such as a time limit that a test cannot wait for.
    """

    def __init__(self, folder: Path, upstream: int, changed: Mapping[str, str] | None = None) -> None:
        nginx, openssl = require_program("nginx"), require_program("openssl")
        folder.mkdir()
        self.folder = folder
        self.port, self.plain_port = free_port(), free_port()
        self.url = f"https://127.0.0.1:{self.port}"
        self.certificate = folder / "certificate.pem"
        self._sign(openssl, folder / "key.pem")
        (folder / "idios.conf").write_text(self._copy(upstream, changed or {}))
        (folder / "nginx.conf").write_text(SURROUNDINGS.format(folder=folder))
        with (folder / "output").open("wb") as output:
            self._process = subprocess.Popen(
                [nginx, "-p", str(folder), "-e", str(folder / "error.log"), "-c", str(folder / "nginx.conf")],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        try:
            self._wait()
        except BaseException:
            self.stop()
            raise

    @property
    def trust(self) -> ssl.SSLContext:
        """What a client must know to believe the certificate."""
        return ssl.create_default_context(cafile=str(self.certificate))

    def logs(self) -> str:
        """Everything that nginx wrote down."""
        return "".join(path.read_text() for path in sorted(self.folder.glob("*.log")))

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait()

    def __enter__(self) -> Nginx:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _copy(self, upstream: int, changed: Mapping[str, str]) -> str:
        text = SHIPPED.read_text()
        if not _has_ipv6():
            text = re.sub(r"^ *listen \[::\].*\n", "", text, flags=re.MULTILINE)
        places = {
            "listen 80;": f"listen 127.0.0.1:{self.plain_port};",
            "listen 443 ssl;": f"listen 127.0.0.1:{self.port} ssl;",
            "/etc/ssl/idios/fullchain.pem": str(self.certificate),
            "/etc/ssl/idios/privkey.pem": str(self.folder / "key.pem"),
            "/var/log/nginx/": f"{self.folder}/",
            "http://127.0.0.1:8000;": f"http://127.0.0.1:{upstream};",
            **changed,
        }
        for shipped, here in places.items():
            if shipped not in text:
                raise ValueError(f"deploy/nginx.conf does not say {shipped!r}")
            text = text.replace(shipped, here)
        return text.replace("[::]:80;", f"[::1]:{self.plain_port};").replace("[::]:443 ", f"[::1]:{self.port} ")

    def _sign(self, openssl: str, key: Path) -> None:
        made = subprocess.run(
            [
                *(openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"),
                *("-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"),
                *("-keyout", str(key), "-out", str(self.certificate)),
            ],
            capture_output=True,
            check=False,
        )
        if made.returncode:
            raise RuntimeError(f"openssl failed: {made.stderr.decode(errors='replace')}")

    def _wait(self) -> None:
        deadline = time.monotonic() + 60
        while True:
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"nginx did not start: {(self.folder / 'output').read_text()}{self.logs()}")
            try:
                socket.create_connection(("127.0.0.1", self.port), 5).close()
                return
            except OSError:
                time.sleep(0.05)


def _has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True
