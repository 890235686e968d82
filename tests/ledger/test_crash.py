"""A process is killed (SIGKILL) at each step: budget may be lost, privacy never."""

from __future__ import annotations

import signal
from fractions import Fraction

import pytest

from idios.ledger import Ledger, Reservation
from tests.ledger.ledger_place import Place, ask, finished, people
from tests.ledger.ledger_worker import table

# step: (is the charge on record?, is the answer?)
STEPS = {
    "in-reserve": (False, False),
    "after-reserve": (True, False),
    "during-compute": (True, False),
    "in-release": (True, False),
    "after-release": (True, True),
}


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS)
def test_a_killed_process_leaves_a_right_ledger(place: Place, step: str) -> None:
    charged, answered = STEPS[step]
    with place.open() as ledger:
        ledger.declare(people(1, "1e-6", accounting="concentrated"))
    finished(place.worker("die", step), code=-signal.SIGKILL)

    with place.open() as ledger:
        assert ledger.verify().ok
        spent = ledger.balance("people").epsilon.spent
        assert spent == (Fraction(1, 4) if charged else 0)
        assert ledger.balance("people").rho.spent == spent**2 / 2  # type: ignore[union-attr]
        assert spent >= sum(answer.epsilon for answer in ledger.answers())
        assert len(ledger.answers()) == answered

        result = ledger.reserve(ask())
        if isinstance(result, Reservation):
            assert result.joined is charged
            result = ledger.release(result, table('{"value": "drawn after"}'))
        assert result.text == f'{{"value": "drawn {"before" if answered else "after"}"}}'
        # Completed once: from now on there is one answer, and asking for it is free.
        assert ledger.reserve(ask()) == result
        assert ledger.balance("people").epsilon.spent == Fraction(1, 4)
        assert ledger.balance("people").rho.spent == Fraction(1, 32)  # type: ignore[union-attr]
        assert ledger.verify().ok


def test_a_killed_analyst_pays_once(place: Place) -> None:
    with place.open() as ledger:
        ledger.declare(people())
        ledger.add_analyst("ada")
        ledger.grant("ada", "people", epsilon=Fraction(1, 4))
        ledger.reserve(ask(analyst="ada"))
    # The process is gone; the next one joins what the lost one reserved.
    with Ledger.open(place.url, place.key_file) as ledger:
        ledger.reserve(ask(analyst="ada"))
        assert ledger.balance("people", "ada").epsilon.remaining == 0
