"""What a party holds: declared data sets, opened where they live and known to the ledger."""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from idios.backends.base import Backend, Progress, open_source
from idios.config import Declared
from idios.ledger import Declaration, Ledger
from idios.query.schema import Dataset

PURPOSE = "version of a file"


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
    try:
        for one in declared:
            if not retired and ledger.retired(one.dataset.name):
                continue
            dataset = replace(one.dataset, version=one.dataset.version or _version(one.source, ledger))
            holdings[dataset.name] = Holding(dataset, open_source(one.source, dataset, progress, one.csv_format))
            ledger.declare(
                Declaration(dataset.name, dataset.version, one.budget, one.delta_budget, dataset.min_epsilon)
            )
    except BaseException:
        for holding in holdings.values():
            holding.backend.close()
        ledger.close()
        raise
    return holdings


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
