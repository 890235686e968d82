"""The files for deployment parse to what the documentation claims, and every command in it exists."""

from __future__ import annotations

import configparser
import json
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
import typer

from idios.cli.main import app
from idios.server.startup import MOST

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "deploy.md").read_text()
FENCED = re.findall(r"^```(\w*)\n(.*?)^```", PAGE, flags=re.DOTALL | re.MULTILINE)


def commands(text: str) -> list[str]:
    """Every command line of Idios, in blocks (behind sudo, podman or a path too) and in the running text."""
    prose = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    lines = [
        line
        for kind, block in re.findall(r"^```(\w*)\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
        if not kind
        for line in block.replace("\\\n", " ").splitlines()
    ]
    found = [match[1] for line in lines if (match := re.search(r"(?:^|/bin/|exec idios )(idios [a-z].*)$", line))]
    return found + re.findall(r"`(idios [a-z][^`]*)`", prose)


def missing(line: str) -> str | None:
    """What a command line names that does not exist."""
    command: Any = typer.main.get_command(app)
    words = shlex.split(line)[1:]
    while hasattr(command, "get_command"):
        if not words:
            return None
        found = command.get_command(typer.Context(command), words[0])
        if found is None:
            return f"command {words[0]}"
        command, words = found, words[1:]
    known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    unknown = [word for word in words if word.startswith("--") and word.partition("=")[0] not in known]
    return f"option {unknown[0]}" if unknown else None


@pytest.mark.parametrize("line", sorted(set(commands(PAGE))))
def test_every_command_of_the_page_exists(line: str) -> None:
    assert missing(line) is None, f"{line}: there is no {missing(line)}"


def test_commands_are_found_and_errors_in_them_too() -> None:
    found = commands(PAGE)
    assert len(found) >= 25
    for start in (
        "idios init people.parquet",
        "idios serve --config idios.toml --behind-proxy",
        "idios ledger balance --config",
    ):
        assert any(line.startswith(start) for line in found), start
    assert sum("token carla --controller" in line for line in found) == 2
    assert missing("idios check --config x") is None
    assert missing("idios chek") == "command chek"
    assert missing("idios ledger sing") == "command sing"
    assert missing("idios check --colour") == "option --colour"


def test_the_configuration_of_the_page_can_be_read() -> None:
    read = [tomllib.loads(block) for kind, block in FENCED if kind == "toml"]
    assert {*read[0]} == {"ledger", "server"}
    assert read[0]["server"]["shutdown_seconds"] == 30


def unit() -> dict[str, dict[str, str]]:
    """The unit file; a key that is given twice is joined by a space, as systemd does for lists."""
    text = (ROOT / "deploy" / "idios.service").read_text()
    sections = configparser.ConfigParser(interpolation=None, strict=False, comment_prefixes=("#",), delimiters=("=",))
    sections.optionxform = str  # type: ignore[assignment, method-assign]
    sections.read_string(text)
    found = {name: dict(sections[name]) for name in sections.sections()}
    found["Service"]["Environment"] = " ".join(re.findall(r"^Environment=(.*)$", text, flags=re.MULTILINE))
    return found


def test_the_unit_leaves_files_for_all_connections() -> None:
    assert int(unit()["Service"]["LimitNOFILE"]) >= 2 * MOST


def test_the_unit_is_closed_to_everything_but_its_state() -> None:
    service = unit()["Service"]
    assert service["User"] == "idios"
    assert service["ProtectSystem"] == "strict"
    assert service["StateDirectory"] == "idios"
    for key in (
        "NoNewPrivileges",
        "PrivateTmp",
        "PrivateDevices",
        "ProtectHome",
        "RestrictSUIDSGID",
        "RestrictNamespaces",
    ):
        assert service[key] == "yes", key
    assert service["CapabilityBoundingSet"] == ""
    assert not {"ReadWritePaths", "BindPaths", "AmbientCapabilities"} & set(service)
    written = [value.partition("=")[2] for value in service["Environment"].split()]
    assert all("/var/lib/idios/" in path for path in written)
    assert unit()["Install"]["WantedBy"] == "multi-user.target"


def test_the_unit_runs_a_command_that_exists_and_waits_for_questions() -> None:
    service = unit()["Service"]
    folder, _, line = service["ExecStart"].rpartition("/bin/")
    assert folder == "/opt/idios"
    assert line == "idios serve --config /etc/idios/idios.toml"
    assert missing(line) is None
    assert int(service["TimeoutStopSec"]) >= 30 + 20
    assert f"waits {service['TimeoutStopSec']} seconds" in PAGE
    assert service["KillSignal"] == "SIGTERM"


def instructions() -> list[tuple[str, str]]:
    """The instructions of the container file, each on one line."""
    text = (ROOT / "deploy" / "Containerfile").read_text()
    joined = re.sub(r"\\\n", " ", "\n".join(line for line in text.splitlines() if not line.startswith("#")))
    return [(name, rest) for name, _, rest in (line.partition(" ") for line in joined.splitlines() if line.strip())]


def last(name: str) -> str:
    return [rest for one, rest in instructions() if one == name][-1]


def test_the_container_runs_without_rights_and_watches_its_health() -> None:
    assert {name for name, _ in instructions()} <= {
        *("FROM", "WORKDIR", "COPY", "RUN", "ENV", "USER", "VOLUME", "EXPOSE", "STOPSIGNAL", "HEALTHCHECK"),
        *("ENTRYPOINT", "CMD"),
    }
    assert {rest.split()[0] for name, rest in instructions() if name == "FROM"} == {"python:3.11-slim"}
    assert last("USER") == "idios"
    line = [*json.loads(last("ENTRYPOINT")), *json.loads(last("CMD"))]
    assert shlex.join(line) == "idios serve --config /etc/idios/idios.toml"
    assert missing(shlex.join(line)) is None
    health = json.loads(last("HEALTHCHECK").partition("CMD ")[2])
    assert health[:2] == ["python", "-c"]
    assert "/healthz" in health[2]
    compile(health[2], "HEALTHCHECK", "exec")


def test_the_container_has_pinned_packages_and_no_secret_in_a_layer() -> None:
    runs = " ".join(rest for name, rest in instructions() if name == "RUN")
    assert "--constraint constraints.txt" in runs
    assert "[server,postgres]" in runs
    copied = {source for name, rest in instructions() if name == "COPY" for source in rest.split()[:-1]}
    assert copied == {"pyproject.toml", "constraints.txt", "README.md", "LICENSE", "src", "--from=build", "/opt/idios"}
    for source in copied - {"--from=build", "/opt/idios"}:
        assert (ROOT / source).exists(), source
    set_there = dict(pair.split("=", 1) for pair in last("ENV").split())
    assert not [name for name in set_there if re.search("TOKEN|PASSWORD|SECRET", name)]
    assert set_there["IDIOS_LEDGER_URL"] == "sqlite:////var/lib/idios/ledger.db"
    assert set_there["IDIOS_LEDGER_KEY_FILE"].startswith(last("VOLUME"))


def test_the_proxy_replaces_what_clients_claim_and_waits_long_enough() -> None:
    text = re.sub(r"#.*", "", (ROOT / "deploy" / "nginx.conf").read_text())
    assert text.count("{") == text.count("}")
    headers = re.findall(r"proxy_set_header (X-Forwarded-\w+) (\S+);", text)
    assert sorted(headers) == [("X-Forwarded-For", "$remote_addr"), ("X-Forwarded-Proto", "$scheme")]
    places = re.findall(r"location [^{]*\{([^}]*)\}", text)
    assert len(places) == text.count("proxy_pass")
    assert not [place for place in places if "proxy_set_header" in place], "a place with one of its own inherits none"
    read, buffered = (re.findall(rf"client_{name} (\w+);", text) for name in ("max_body_size", "body_buffer_size"))
    assert read == buffered, "what is read and not buffered is written to a file"
    waited = re.search(r"proxy_read_timeout (\d+)s;", text)
    assert waited is not None
    assert int(waited[1]) > 60
    for line in text.replace("{", "{\n").splitlines():
        assert not line.strip() or line.strip()[-1] in ";{}", line
