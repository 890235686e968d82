"""``idios serve``: the trusted party for a team."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from idios.cli import output
from idios.errors import ConfigurationError


def serve(
    config: Annotated[Path, typer.Option(help="The configuration file.")] = Path("idios.toml"),
    host: Annotated[str | None, typer.Option(help="The address to listen on; 127.0.0.1 unless declared.")] = None,
    port: Annotated[int | None, typer.Option(help="The port; 8000 unless declared.")] = None,
    workers: Annotated[int | None, typer.Option(help="How many processes; best with a PostgreSQL ledger.")] = None,
    tls_cert: Annotated[Path | None, typer.Option(help="The certificate chain, to serve HTTPS itself.")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="The certificate's key.")] = None,
    behind_proxy: Annotated[
        str | None, typer.Option(help="The address of the proxy whose X-Forwarded headers are believed.")
    ] = None,
    demo: Annotated[
        bool, typer.Option("--demo", help="Serve generated people from a temporary folder, with tokens to try it.")
    ] = False,
) -> None:
    """Answer analysts over HTTP: an API under /v1 and a console for the browser under /console.

    Data sets must be declared at protection = "differential", or with analysts = "trusted" beside a weaker level. The
    ledger is verified while the first questions are answered, and /readyz says so. Stop it with Ctrl-C: running
    questions are finished first.
    """
    if find_spec("fastapi") is None or find_spec("uvicorn") is None:
        raise ConfigurationError("the server needs packages that are not installed: pip install 'idios[server]'")
    from idios.server import startup

    given: dict[str, Any] = {
        "host": host,
        "port": port,
        "workers": workers,
        "tls_cert": None if tls_cert is None else str(tls_cert.resolve()),
        "tls_key": None if tls_key is None else str(tls_key.resolve()),
        "behind_proxy": behind_proxy,
    }
    chosen = {key: value for key, value in given.items() if value is not None}
    source: AbstractContextManager[tuple[Path, list[str]]] = startup.open_demo() if demo else nullcontext((config, []))
    with source as (path, told):
        configuration = startup.load_configuration(path)
        settings = replace(configuration.server, **chosen)
        startup.check_address(settings)
        scheme = "https" if settings.tls_cert else "http"
        address = f"{scheme}://{settings.host}:{settings.port}"
        output.stderr.print(f"Serving {', '.join(configuration.datasets)} at {address}/console", highlight=False)
        for line in [*startup.list_address_risks(settings), *(told or startup.list_next_steps(configuration))]:
            output.stderr.print(line, highlight=False, soft_wrap=True)
        startup.run(path, settings)
