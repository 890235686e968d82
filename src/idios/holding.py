"""What a party holds: declared data sets, opened where they live and known to the ledger."""

from __future__ import annotations

import hmac
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from idios.backends.base import Backend, Progress, open_source
from idios.backends.resources import divide_memory, remove_abandoned
from idios.config import Declared
from idios.core.exact import text
from idios.errors import DataChanged
from idios.ledger import Balance, Declaration, Ledger
from idios.query.schema import Dataset
from idios.sharing import sharing

PURPOSE = "version of a file"

log = logging.getLogger("idios.controller")


@dataclass(frozen=True)
class OpenedFile:
    """A file as it was when it was opened: where it is, which one it is, its size and its time."""

    path: Path
    facts: tuple[int, ...]

    @classmethod
    def of(cls, source: Any) -> OpenedFile | None:
        """The file behind a source; None if it is no file."""
        path = Path(str(source).partition("::")[0]).absolute() if isinstance(source, str | Path) else None
        return None if path is None or not path.is_file() else cls(path, _facts(path))

    @property
    def changed(self) -> bool:
        """Whether it was replaced, written to or removed since."""
        try:
            return _facts(self.path) != self.facts
        except OSError:
            return True


def _facts(path: Path) -> tuple[int, ...]:
    found = path.stat()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


@dataclass(frozen=True)
class Holding:
    """One data set that the party holds."""

    dataset: Dataset
    backend: Backend
    file: OpenedFile | None = None

    def check(self) -> None:
        """Refuse if the data is not what was opened: its version, and what was answered, would be of something else."""
        if self.file is not None and self.file.changed:
            raise DataChanged(
                f"the data of {self.dataset.name!r} has changed since it was opened, and answers would mix the two: "
                "open it again, or restart the server"
            )


def hold(
    declared: Iterable[Declared], ledger: Ledger, progress: Progress | None, *, retired: bool
) -> dict[str, Holding]:
    """Open every data set and declare it to the ledger, or close all that was opened and the ledger too.

    One that is retired is an error, unless ``retired`` is False: then it is left out, data and all.
    """
    holdings: dict[str, Holding] = {}
    balances: dict[str, Balance] = {}
    sources: dict[str, str] = {}
    remove_abandoned()
    try:
        kept = [one for one in declared if retired or not ledger.retired(one.dataset.name)]
        for one in kept:
            file = OpenedFile.of(one.source)
            dataset = replace(one.dataset, version=one.dataset.version or _version(file, ledger))
            with divide_memory(len(kept)):
                backend = open_source(one.source, dataset, progress, one.csv_format)
            holdings[dataset.name] = Holding(dataset, backend, file)
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


def _version(file: OpenedFile | None, ledger: Ledger) -> str:
    """A version that changes with a file's size or time, never its content; a table in memory has none of its own.

    Versions are shown to analysts, and a size tells about the records: it is hashed under the ledger's key.
    """
    if file is None:
        return "as opened"
    _, _, size, time = file.facts
    told = f"{size} bytes, {time} ns"
    return f"file {hmac.digest(ledger.derive(PURPOSE), told.encode(), 'sha256').hex()[:16]}"
