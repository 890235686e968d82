"""What a server refuses to serve."""

from __future__ import annotations

from pathlib import Path

import pytest

from idios.config import read_configuration
from idios.core.sampling import SeededSource
from idios.errors import ConfigurationError, LedgerTampered
from idios.party import TrustedParty
from idios.server.checks import check_levels, list_dataset_risks
from idios.server.service import Service
from idios.server.startup import load_configuration
from tests.server.office import open_office, write_office


@pytest.mark.parametrize("level", ['"individual"', '"group"\ngroup = 3'])
def test_levels_that_attacks_break_need_trusted_analysts(tmp_path: Path, level: str) -> None:
    config = write_office(tmp_path)
    text = config.read_text().replace('"individual"', level)
    config.write_text(text.replace('analysts = "trusted"\n', ""))
    with pytest.raises(ConfigurationError) as refused:
        load_configuration(config)
    told = str(refused.value)
    assert "[datasets.patients]" in told
    assert "MEDIAN of a column of 0s and 1000s" in told
    assert 'protection = "differential"' in told
    assert 'analysts = "trusted"' in told
    assert not (tmp_path / "ledger.db").exists()
    config.write_text(text)
    load_configuration(config)


def test_an_application_refuses_them_too(tmp_path: Path) -> None:
    config = write_office(tmp_path)
    config.write_text(config.read_text().replace('analysts = "trusted"\n', ""))
    configuration = read_configuration(config)
    with TrustedParty.from_config(config) as party, pytest.raises(ConfigurationError, match="not trusted"):
        Service.start(party, configuration.datasets, configuration.server)


def test_a_seeded_source_is_refused(tmp_path: Path) -> None:
    config = write_office(tmp_path)
    configuration = read_configuration(config)
    with TrustedParty.from_config(config) as party:
        seeded = TrustedParty(party.datasets, party.ledger, SeededSource(1))
        with pytest.raises(ConfigurationError, match="seeded"):
            Service.start(seeded, configuration.datasets, configuration.server)


def test_a_ledger_that_was_tampered_with_is_not_served(tmp_path: Path) -> None:
    import sqlite3

    config = write_office(tmp_path)
    open_office(config).service.party.close()
    with sqlite3.connect(tmp_path / "ledger.db") as base:
        base.execute("UPDATE idios_grants SET epsilon_spent = '0/1', epsilon = '100/1'")
    base.close()
    with pytest.raises(LedgerTampered, match="grants"):
        load_configuration(config)


def test_risky_declarations_are_told(tmp_path: Path) -> None:
    config = write_office(tmp_path)
    declared = read_configuration(config).datasets
    assert len(list_dataset_risks(declared["people"])) == 1  # the test office declares release_seconds = 0
    told = " ".join(list_dataset_risks(declared["patients"]))
    assert "KTH_LARGEST" in told
    assert "income" in told
    config.write_text(
        config.read_text().replace(
            "budget = 5", "budget = 5\nfloor = 0\nmin_epsilon = 0.0001\nparameters = { k = false }"
        )
    )
    told = " ".join(list_dataset_risks(read_configuration(config).datasets["patients"]))
    for risk in ("floor = 0", "min_epsilon", "parameters"):
        assert risk in told


def test_the_default_is_padded(tmp_path: Path) -> None:
    config = write_office(tmp_path)
    config.write_text(config.read_text().replace("release_seconds = 0\n", ""))
    declared = read_configuration(config).datasets
    assert declared["people"].release_seconds * 4 == 1
    assert declared["patients"].release_seconds == 0
    assert list_dataset_risks(declared["people"]) == []
    check_levels(declared.values())
