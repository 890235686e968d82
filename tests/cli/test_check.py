"""``idios check``: the data against their declaration."""

from __future__ import annotations

from pathlib import Path

from tests.cli.runner import run, run_json


def test_check_finds_what_is_not_as_declared(folder: Path) -> None:
    run("init", "people.csv", "--yes", "--bounds", "age=0..50")
    path = folder / "idios.toml"
    path.write_text(
        path.read_text().replace('income = { type = "number" }', 'income = { type = "number", nullable = false }')
    )
    result = run("check")
    assert result.exit_code == 1
    assert "nullable" in result.stdout
    report = run_json("check")["datasets"]["people"]
    assert not report["sound"]
    assert report["rows"] == 500
