"""What a party holds: declared data sets, opened where they live and known to the ledger."""

from __future__ import annotations

import hmac
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from idios.backends.base import Backend, Progress, open_source
from idios.config import Declared
from idios.core.exact import text
from idios.ledger import Balance, Declaration, Ledger
from idios.query.schema import Dataset
from idios.sharing import sharing

PURPOSE = "version of a file"

log = logging.getLogger("idios.controller")


@dataclass(frozen=True)
class Holding:
    """One data set that the party holds."""

    dataset: Dataset
    backend: Backend


def hold(
    declared: Iterable[Declared], ledger: Ledger, progress: Progress | None, *, retired: bool
) -> dict[str, Holding]:
    """Open every data set and declare it to the ledger, or close all that was opened and the ledger too.

    One that is retired is an error, unless ``retired`` is False: then it is left out, data and all.
    """
    holdings: dict[str, Holding] = {}
    balances: dict[str, Balance] = {}
    sources: dict[str, str] = {}
    try:
        for one in declared:
            if not retired and ledger.retired(one.dataset.name):
                continue
            dataset = replace(one.dataset, version=one.dataset.version or _version(one.source, ledger))
            holdings[dataset.name] = Holding(dataset, open_source(one.source, dataset, progress, one.csv_format))
            balances[dataset.name] = ledger.declare(
                Declaration(dataset.name, dataset.version, one.budget, one.delta_budget, dataset.min_epsilon)
            )
            if isinstance(one.source, str):
                sources[dataset.name] = one.source
    except BaseException:
        for holding in holdings.values():
            holding.backend.close()
        ledger.close()
        raise
    _warn_of_sharing(sources, balances)
    return holdings


def _warn_of_sharing(sources: Mapping[str, str], balances: Mapping[str, Balance]) -> None:
    """Tell the controller what data sets over one source may cost the people in it together."""
    for names in sharing(sources):
        total = sum(balances[name].epsilon.budget or 0 for name in names)
        log.warning(
            "%s have one source: about the same people up to ε = %s may be spent, the sum of their budgets",
            " and ".join(names),
            text(total),
        )


def _version(source: Any, ledger: Ledger) -> str:
    """Another one whenever a file's size or time is, never its content; a table in memory has no version of its own.

    Versions are shown to analysts, and a size tells about the records: it is told under the ledger's key only.
    """
    path = Path(str(source).partition("::")[0]) if isinstance(source, str | Path) else None
    if path is None or not path.exists():
        return "as opened"
    facts = path.stat()
    told = f"{facts.st_size} bytes, {facts.st_mtime_ns} ns"
    return f"file {hmac.digest(ledger.derive(PURPOSE), told.encode(), 'sha256').hex()[:16]}"
