"""What users call has an example that runs: ``make check`` runs them all, with ``src/conftest.py``."""

from __future__ import annotations

import inspect

import pytest

import idios
from idios.client import RemoteParty
from idios.party import TrustedParty

STEPS = {
    "complete",
    "compute",
    "key",
    "limited_to",
    "make_check_plan",
    "make_plan",
    "price",
    "recall",
    "release",
    "reserve",
    "try_out",
}
"""What the server calls: the steps of a question, one by one."""


def test_every_function_has_an_example() -> None:
    functions = [getattr(idios, name) for name in idios.__all__ if name[0].islower()]
    assert len(functions) == 18
    for function in functions:
        assert ">>> " in (inspect.getdoc(function) or ""), function
    assert "help(idios) lists the keywords." in (inspect.getdoc(idios.median) or "")
    for keyword in ("epsilon", "step", "bounds", "centre", "neighbours", "protection", "group", "floor", "nullable"):
        assert f"\n    {keyword} " in (idios.__doc__ or ""), keyword


@pytest.mark.parametrize("party", [TrustedParty, RemoteParty])
def test_every_method_has_an_example(party: type) -> None:
    methods = {name: found for name, found in vars(party).items() if not name.startswith("_")}
    for name in methods.keys() - STEPS:
        assert ">>> " in (inspect.getdoc(getattr(party, name)) or ""), name
