"""What the examples of the package's docstrings call ``party`` and ``idios``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(autouse=True)
def party_of_examples(
    request: pytest.FixtureRequest, doctest_namespace: dict[str, Any], tmp_path: Path
) -> Iterator[None]:
    """Where examples are about a party, one that holds the people of ``TrustedParty``; or a server's."""
    import idios

    doctest_namespace["idios"] = idios
    name = request.node.name
    if name.startswith("idios.party.TrustedParty."):
        example = (idios.TrustedParty.__doc__ or "").partition("The party of the examples below:")[2]
        lines = [line.strip()[4:] for line in example.splitlines() if line.strip().startswith((">>>", "..."))]
        exec("\n".join(lines[:-1]), doctest_namespace)  # all but closing it
        with doctest_namespace["party"]:
            yield
    elif name.startswith("idios.client."):
        from tests.server.office import connect_office

        with connect_office(tmp_path) as party:
            doctest_namespace["party"] = party
            yield
    else:
        yield
