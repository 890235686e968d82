"""Run commands in this process, as a controller types them."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from idios.cli.main import app

MEDIAN = "SELECT MEDIAN(income) FROM people"
MEDIAN_AGE = "SELECT MEDIAN(age) FROM people"

_CONFIGURATION = """
[ledger]
url = "sqlite:///ledger.db"
key_file = "ledger.key"

[datasets.people]
source = "people.csv"
{budget}

[datasets.people.columns]
age = {{ type = "integer" }}
"""


def run(*arguments: str) -> Result:
    """Run a command; its errors are raised as they are, an exit code is left to the caller."""
    result = CliRunner().invoke(app, list(arguments), catch_exceptions=True)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def run_text(*arguments: str, code: int = 0) -> str:
    """Run a command that ends with this exit code, and give all that it printed."""
    result = run(*arguments)
    assert result.exit_code == code, result.output
    return result.output


def run_json(*arguments: str) -> Any:
    """Run a command with ``--json``."""
    return json.loads(run(*arguments, "--json").stdout)


def answer_prompts(monkeypatch: pytest.MonkeyPatch, total: str) -> list[tuple[str, str]]:
    """Sit at a terminal, give this total, confirm everything; returns how totals were asked for, and the offers."""
    asked: list[tuple[str, str]] = []

    def answer(prompt: object, *, default: str = "", **_: object) -> str:
        if not str(prompt).startswith("Total"):
            return default
        asked.append((str(prompt), default))
        return total

    monkeypatch.setattr("idios.cli.init.sys", SimpleNamespace(stdin=SimpleNamespace(isatty=lambda: True)))
    monkeypatch.setattr("idios.cli.init.Prompt.ask", answer)
    monkeypatch.setattr("idios.cli.init.Confirm.ask", lambda *_, **__: True)
    return asked


def configure(budget: str = "1", delta: str = "", protection: str = "individual", **keys: str) -> None:
    """Write a configuration for the file people.csv in this folder; with a δ the accounting is concentrated."""
    keys["protection"] = protection
    concentrated = f'accounting = "concentrated"\nbudget = {{ epsilon = "{budget}", delta = "{delta}" }}'
    declared = concentrated if delta else f'budget = "{budget}"'
    more = "".join(f'\n{key} = "{value}"' for key, value in keys.items())
    Path("idios.toml").write_text(_CONFIGURATION.format(budget=declared + more))
