"""kill -9 under load: what a client received is in the ledger, and what it asks again is answered the same."""

from __future__ import annotations

import threading
from fractions import Fraction
from pathlib import Path

import pytest

import idios
from idios.config import read_configuration
from idios.ledger import Ledger
from idios.model import Answer
from idios.party import TrustedParty
from tests.server.office import let_in, write_office
from tests.services.serving import Serving
from tests.waiting import until

CLIENTS = 6
QUESTIONS = 12


@pytest.mark.parametrize("engine", ["sqlite", "postgresql"])
def test_nothing_is_lost_but_budget(engine: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    url = "sqlite:///ledger.db"
    options: tuple[str, ...] = ()
    if engine == "postgresql":
        url, options = request.getfixturevalue("ledger_base"), ("--workers", "2")
    config = write_office(tmp_path, ledger=url)
    with TrustedParty.from_config(config) as party:
        tokens = let_in(party.ledger)
    received: dict[tuple[int, int], Answer] = {}

    def analyst(client: int) -> None:
        with idios.connect(serving.url, tokens.ada, timeout=120) as remote:
            for number in range(QUESTIONS):
                received[client, number] = remote.query(question(client, number), "0.05")

    with Serving(config, *options).wait() as serving:
        threads = [threading.Thread(target=analyst, args=(client,)) for client in range(CLIENTS)]
        for thread in threads:
            thread.start()
        for kill in (1, 2):
            until(lambda kill=kill: len(received) >= kill * CLIENTS * QUESTIONS // 4, 120)
            serving.kill()
            serving.restart()
        for thread in threads:
            thread.join(120)
        assert len(received) == CLIENTS * QUESTIONS
        with idios.connect(serving.url, tokens.ada) as remote:
            again = {place: remote.query(question(*place), "0.05") for place in received}
        assert serving.stop() == 0
    assert all(again[place].stored for place in received)
    assert all(again[place].exact_rows == answer.exact_rows for place, answer in received.items())
    configuration = read_configuration(config)
    with Ledger.open(configuration.ledger_url, configuration.key_file) as ledger:
        assert ledger.verify().ok
        stored = {one.key[:16]: one for one in ledger.answers("people", "ada")}
        assert {answer.id for answer in received.values()} == stored.keys()
        released = sum((one.epsilon for one in stored.values()), Fraction(0))
        assert released == CLIENTS * QUESTIONS * Fraction(1, 20)
        assert ledger.balance("people").epsilon.spent >= released
        assert ledger.balance("people", "ada").epsilon.spent >= released


def question(client: int, number: int) -> str:
    """A question that no other caller asks."""
    return f"SELECT MEDIAN(age) FROM people WHERE income >= {client} AND age < {60 + number}"
