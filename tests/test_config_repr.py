"""A configuration that is printed shows no password."""

from __future__ import annotations

from pathlib import Path

from idios.config import read_configuration

TOML = """
[ledger]
url = "postgresql://keeper:hunter2@localhost/ledger"
key_file = "ledger.key"

[datasets.people]
source = "postgresql://reader:hunter3@localhost/data?table=people"
version = "1"
budget = 1

[datasets.people.columns]
age = { type = "integer" }
"""


def test_no_password_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "idios.toml"
    path.write_text(TOML)
    configuration = read_configuration(path, {})
    assert "hunter2" in configuration.ledger_url
    assert "hunter3" in configuration.datasets["people"].source
    assert "hunter" not in repr(configuration)
