"""``idios serve --demo``: generated people, a controller and an analyst, in a folder that is removed at the end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

from idios.backends.resources import TemporaryFolder
from idios.ledger import Role
from idios.party import TrustedParty
from idios.sandbox import write_people

CONFIGURATION = """\
[ledger]
url = "sqlite:///ledger.db"
key_file = "ledger.key"

[datasets.people]
source = "people.parquet"
version = "generated"
protection = "differential"
delta = 1e-6
budget = 10

[datasets.people.columns]
age = { type = "integer", bounds = [0, 120], nullable = false }
income = { type = "integer", nullable = false }
region = { type = "category", values = ["north", "south", "east", "west"] }
"""


@contextmanager
def prepared() -> Iterator[tuple[Path, list[str]]]:
    """A configuration that can be served at once, and what to tell the person who tries it."""
    with TemporaryFolder("demo") as folder:
        config = Path(folder) / "idios.toml"
        config.write_text(CONFIGURATION, encoding="utf-8")
        write_people(Path(folder) / "people.parquet")
        with TrustedParty.from_config(config) as party:
            ledger = party.ledger
            ledger.add_analyst("ada")
            ledger.grant("ada", "people", epsilon=Fraction(3))
            analyst = ledger.issue_token("ada")
            controller = ledger.issue_token("grace", role=Role.CONTROLLER)
        yield (
            config,
            [
                "Generated data, a budget of ε = 10, of which ada may spend 3. Everything is gone when this ends.",
                f"  the analyst ada signs in with       {analyst}",
                f"  the controller grace signs in with  {controller}",
            ],
        )


@contextmanager
def nothing(config: Path) -> Iterator[tuple[Path, list[str]]]:
    """The controller's own configuration, with nothing to tell about it."""
    yield config, []
