"""Data sets: what a controller declares of one, and the engine that holds its data.

Rules:

1. A data set is declared in one way: ``declare`` checks a table of ``idios.toml`` and the arguments of
   ``TrustedParty.open`` alike.
2. A key that is not known is an error that lists the known ones; nothing is ignored.
3. Everything declared is public. Nothing is completed by looking at the data.
"""

from __future__ import annotations

import csv
import hmac
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

from idios.core.calibration import DEFAULT, Level, Protection
from idios.core.exact import exact, positive, whole
from idios.core.neighbours import Neighbours
from idios.core.statistics import FINE, FINENESS, Parameters
from idios.data.backend import Backend, DataSource, Progress, describe_change, open_source
from idios.data.formats.csv import CsvFormat, read_format
from idios.data.formats.files import OpenedFile, describe_files, may_be_csv
from idios.data.formats.resources import divide_memory, remove_abandoned
from idios.declare.declared_columns import read_column
from idios.declare.schema import Budget, Column, Dataset
from idios.display import shorten_list
from idios.errors import DataChanged, InvalidInput
from idios.ledger import Declaration, Ledger, Promise
from idios.plan.budget import read_check
from idios.plan.joins import find_table, list_tables, read_links
from idios.plan.reductions import read_limit, read_order, read_unit, read_unit_word
from idios.sql.derived import derive_columns
from idios.sql.names import quote

# Code lists: files that say which codes a column of categories has, and what each is called.
#
# A code list is a csv file of one column (the codes) or two (the codes and their labels), in UTF-8, delimited by
# commas, semicolons or tabs. A first line such as ``code,label`` is a header and not a code.


HEADERS = ("code", "codes", "value", "values")
"""What the first field of a header is, in any case."""


def read_code_lists(columns: Any, folder: Path | None) -> Any:
    """Replace the names of code lists, relative to ``folder``, by what they list; whatever else is given stays."""
    if not isinstance(columns, Mapping):
        return columns
    return {name: _read_column(str(name), column, folder or Path()) for name, column in columns.items()}


def _read_column(name: str, column: Any, folder: Path) -> Any:
    if not isinstance(column, Mapping) or not isinstance(column.get("values"), str):
        return column
    try:
        return {**column, "values": read_code_list(folder / column["values"])}
    except InvalidInput as error:
        raise InvalidInput(f"column {name!r}: {error}") from None


def read_code_list(path: Path) -> dict[str, str] | list[str]:
    """Codes with their labels, or codes alone."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            first = file.readline()
            file.seek(0)
            delimiter = next((each for each in ";\t" if each in first), ",")
            lines = [line for line in csv.reader(file, delimiter=delimiter, strict=True) if line]
    except OSError:
        raise InvalidInput(f"there is no code list {path.name!r}") from None
    except (UnicodeDecodeError, csv.Error):
        raise InvalidInput(f"the code list {path.name!r} is no csv file in UTF-8") from None
    if lines and lines[0][0].strip().lower() in HEADERS:
        del lines[0]
    widths = {len(line) for line in lines}
    if widths not in ({1}, {2}):
        raise InvalidInput(f"the code list {path.name!r} must have one column, the codes, or two, with their labels")
    codes = [line[0] for line in lines]
    if len(set(codes)) < len(codes):
        raise InvalidInput(f"the code list {path.name!r} has a code twice")
    return codes if widths == {1} else dict(lines)


MIN_EPSILON = Fraction(1, 20)
CHECK = Fraction(1, 5)
"""The share of ε that tells how far off answers are, at `differential`."""
MAX_GROUPS = 1000
RELEASE_SECONDS = Fraction(1, 4)
"""When a server's answers leave at `differential`: after this time, twice, four times it, …"""
MAX_RELEASE_SECONDS = 60

DATASET_KEYS = (
    "source",
    "csv",
    "shares_source",
    "version",
    "unit",
    "unit_word",
    "unique",
    "order",
    "rows",
    "groups",
    "links",
    "public",
    "neighbours",
    "protection",
    "analysts",
    "group",
    "floor",
    "fineness",
    "accounting",
    "budget",
    "check",
    "min_epsilon",
    "max_groups",
    "parameters",
    "release_seconds",
    "columns",
)
FORMER_KEYS = ("delta", "delta_budget", "width")
"""What was needed where a column has no bounds, and is no more."""
PARAMETER_KEYS = ("quantile", "k", "trim")

VERSION_PURPOSE = "version of a file"


@dataclass(frozen=True)
class DatasetConfig:
    """One declared data set: what is public of it, where its data is, and what may be spent on it."""

    dataset: Dataset
    source: Any = field(repr=False)  # an address may hold a password
    csv_format: CsvFormat | None = None
    session_settings: Mapping[str, str] = field(default_factory=dict, repr=False)  # they may hold a secret
    """Of the Spark session that is started for its address."""
    analysts_trusted: bool = False
    release_seconds: Fraction = Fraction(0)
    shares_source: bool = False
    given: frozenset[str] = frozenset()
    """The keys that were declared."""
    linked: Mapping[str, DatasetConfig] = field(default_factory=dict)
    """The tables that can be joined to it (``linked_datasets``)."""

    @property
    def tables(self) -> dict[str, DatasetConfig]:
        """Itself and these, by name."""
        return {**self.linked, self.dataset.name: self}


def declare(name: str, table: Mapping[str, Any], folder: Path | None = None) -> DatasetConfig:
    """Check what is declared of one data set; the path of its source is relative to ``folder``."""
    where = f"[datasets.{name}]"
    former = [key for key in table if key in FORMER_KEYS]
    if former:
        raise InvalidInput(
            f'{where}: remove {former[0]}, which nothing needs any more: protection = "differential" answers without '
            "bounds and without δ"
        )
    unknown = [key for key in table if key not in DATASET_KEYS]
    if unknown:
        raise InvalidInput(f"{where}: {unknown[0]!r} is not known; known are {', '.join(DATASET_KEYS)}")
    for key in ("source", "budget", "columns"):
        # public tables have no budget; linked tables may use the budget of another data set
        if key not in table and (key != "budget" or not ("links" in table or table.get("public"))):
            raise InvalidInput(f"{where} needs {key}")
    try:
        table = {**table, "columns": read_code_lists(table["columns"], folder)}
        return _read_dataset(name, table, _resolve_source(table["source"], folder))
    except InvalidInput as error:
        raise InvalidInput(f"{where}: {error}") from None


def _resolve_source(source: Any, folder: Path | None) -> Any:
    """An address or a path as text; what is in memory stays as it is."""
    if folder is None:
        return str(source) if isinstance(source, Path) else source
    written = str(source)
    is_path = ":" not in written.partition("::")[0]
    return str(folder / written) if is_path else written


def _read_dataset(name: str, table: Mapping[str, Any], source: Any) -> DatasetConfig:
    protection = Protection.declare(
        table.get("protection", DEFAULT),
        group=table.get("group"),
        floor=table.get("floor"),
        fineness=table.get("fineness", FINENESS),
    )
    columns, unit = read_columns(table["columns"]), read_unit(table.get("unit"))
    csv_format = read_csv_format(table.get("csv"), source)
    if csv_format is not None and csv_format.nulls:
        columns = {key: replace(column, null_words=csv_format.nulls) for key, column in columns.items()}
    dataset = Dataset(
        name=name,
        columns=columns,
        neighbours=Neighbours.named(table.get("neighbours", "replace")),
        protection=protection,
        min_epsilon=positive(table.get("min_epsilon", MIN_EPSILON), "min_epsilon"),
        max_groups=whole(table.get("max_groups", MAX_GROUPS), "max_groups"),
        parameters=read_parameters(table.get("parameters", {}), protection.level),
        version=str(table.get("version", "")),
        budget=read_budget(table["budget"], table.get("accounting", "pure")) if "budget" in table else None,
        check=read_check(table.get("check", CHECK if protection.level is Level.DIFFERENTIAL else 0)),
        unit=unit,
        unit_word=read_unit_word(table.get("unit_word"), unit),
        unique=_read_unique(table.get("unique", False), unit),
        order=read_order(table.get("order"), bool(unit) or "links" in table, columns),
        rows=read_limit(table.get("rows"), "rows", unit, protection.group),
        groups=read_limit(table.get("groups"), "groups", unit, protection.group),
        links=read_links(table.get("links", {})),
        public=_read_flag(table.get("public", False), "public"),
    )
    return DatasetConfig(
        dataset=dataset,
        source=source,
        csv_format=csv_format,
        analysts_trusted=_read_trust(table.get("analysts")),
        release_seconds=_read_release_seconds(table, protection),
        shares_source=_read_flag(table.get("shares_source", False), "shares_source"),
        given=frozenset(table),
    )


def read_budget(given: Any, accounting: Any) -> Budget:
    """Check a budget: ε, or with concentrated accounting (ε, δ).

    >>> read_budget({"epsilon": 5, "delta": "1e-6"}, "concentrated").delta
    Fraction(1, 1000000)
    """
    table = given if isinstance(given, Mapping) else {"epsilon": given}
    unknown = [key for key in table if key not in ("epsilon", "delta")]
    if unknown or "epsilon" not in table:
        raise InvalidInput(f"budget must be a number or a table {{ epsilon = …, delta = … }}, got {given!r}")
    epsilon = positive(table["epsilon"], "budget")
    if accounting == "pure":
        if "delta" in table:
            raise InvalidInput('a budget with a delta needs accounting = "concentrated": nothing else spends δ')
        return Budget(epsilon)
    if accounting != "concentrated":
        raise InvalidInput(f'accounting must be "pure" or "concentrated", got {accounting!r}')
    if "delta" not in table:
        raise InvalidInput(
            'accounting = "concentrated" needs a budget with a delta, such as { epsilon = 5, delta = "1e-6" }: a '
            "probability far below one over the number of records"
        )
    delta = positive(table["delta"], "delta of the budget")
    if delta >= 1:
        raise InvalidInput(f"delta of the budget must be below 1, got {table['delta']!r}")
    return Budget(epsilon, delta)


def _read_release_seconds(table: Mapping[str, Any], protection: Protection) -> Fraction:
    default = RELEASE_SECONDS if protection.level is Level.DIFFERENTIAL else Fraction(0)
    seconds = exact(table.get("release_seconds", default), "release_seconds")
    if not 0 <= seconds <= MAX_RELEASE_SECONDS:
        raise InvalidInput(
            f"release_seconds must be from 0 (no padding) to {MAX_RELEASE_SECONDS}, got {table['release_seconds']!r}"
        )
    return seconds


def _read_trust(analysts: Any) -> bool:
    if analysts not in (None, "trusted"):
        raise InvalidInput(f'analysts must be "trusted" where it is given, got {analysts!r}')
    return analysts is not None


def _read_flag(value: Any, key: str) -> bool:
    if not isinstance(value, bool):
        raise InvalidInput(f"{key} must be true or false, got {value!r}")
    return value


def _read_unique(value: Any, unit: tuple[str, ...]) -> bool:
    if value and not unit:
        raise InvalidInput("unique says that each person has one row: declare unit too")
    return _read_flag(value, "unique")


def read_csv_format(given: Any, source: Any) -> CsvFormat | None:
    """Check the declared format of a csv file; None where nothing is declared."""
    if given is None or isinstance(given, CsvFormat):
        return given
    if not isinstance(given, Mapping):
        raise InvalidInput(f'csv must be a table such as {{ delimiter = ";", decimal = "," }}, got {given!r}')
    if not may_be_csv(source):
        raise InvalidInput("csv declares how a csv file is written, and the source is none")
    return read_format(Path(source), given)


def read_columns(given: Mapping[str, Any]) -> dict[str, Column]:
    """Check the declared columns; each is a table of its type and what belongs to that, or of its expression."""
    if not isinstance(given, Mapping) or not given:
        raise InvalidInput("columns must be a table of at least one column")
    tables = {str(name): table for name, table in given.items()}
    derived = {name: table for name, table in tables.items() if isinstance(table, Mapping) and "expression" in table}
    held = {name: read_column(name, table) for name, table in tables.items() if name not in derived}
    made = held | derive_columns(derived, held)
    return {name: made[name] for name in tables}


def read_parameters(given: Any, level: Level) -> Parameters:
    """Check which ranks, orders and shares analysts may name; false lifts a restriction.

    Of what is not declared, a level that fits no noise to the data offers all that can be answered.

    >>> read_parameters({"trim": 0.1}, Level.DIFFERENTIAL)
    Parameters(quantile=Fraction(1, 1000), k=None, trim=Fraction(1, 10))
    """
    if isinstance(given, Parameters):
        return given
    if not isinstance(given, Mapping):
        raise InvalidInput("parameters must be a table of quantile, k and trim")
    unknown = [key for key in given if key not in PARAMETER_KEYS]
    if unknown:
        raise InvalidInput(f"parameters: {unknown[0]!r} is not known; known are {', '.join(PARAMETER_KEYS)}")
    usual = FINE if level is Level.DIFFERENTIAL else Parameters()
    free = {key: None for key in PARAMETER_KEYS if given.get(key) is False}
    steps = {
        key: positive(given[key], f"parameters.{key}")
        for key in ("quantile", "trim")
        if key in given and key not in free
    }
    orders = {}
    if "k" in given and "k" not in free:
        listed = given["k"]
        if not isinstance(listed, Sequence) or isinstance(listed, str):
            raise InvalidInput(f"parameters.k must be a list of whole numbers, got {listed!r}")
        orders["k"] = frozenset(whole(k, "parameters.k") for k in listed)
    chosen: dict[str, Any] = {"quantile": usual.quantile, "k": usual.k, "trim": usual.trim, **steps, **orders, **free}
    return Parameters(**chosen)


@dataclass(frozen=True)
class OpenDataset:
    """A data set that the party holds: its public description, and the engine that reads its data."""

    dataset: Dataset
    backend: Backend
    files: tuple[OpenedFile, ...] = ()

    def __repr__(self) -> str:
        return f"<OpenDataset {self.describe()}>"

    def describe(self) -> str:
        """Its name, its columns, those of the tables that are joined to it, and its level."""
        tables = (self.dataset, *self.dataset.tables.values())
        listed = " with ".join(f"{table.name}: {shorten_list(table.columns)}" for table in tables)
        return f"{listed} ({self.dataset.protection.level})"

    @cached_property
    def promise(self) -> Promise:
        """What the ledger charges answers for."""
        return find_promise(self.dataset)

    def check_ready(self) -> None:
        """Refuse if the data cannot be read now, or is not what was opened as far as that is quick to see."""
        if any(file.changed for file in self.files):
            raise DataChanged(describe_change(self.dataset.name))
        self.backend.check_reachable()

    def check_unchanged(self) -> None:
        """Refuse if the data is not what was opened: the version and the stored answers belong to that."""
        self.check_ready()
        self.backend.check_unchanged()


def open_datasets(
    configs: Iterable[DatasetConfig], ledger: Ledger, progress: Progress | None, *, retired: bool, record: bool = True
) -> dict[str, OpenDataset]:
    """Open every data set and ``record`` it in the ledger; if one fails, close what was opened and the ledger too.

    A retired data set is an error, unless ``retired`` is False: then it is left out, and its data is not read.
    """
    datasets: dict[str, OpenDataset] = {}
    remove_abandoned()
    try:
        live = [config for config in configs if retired or not ledger.retired(config.dataset.name)]
        for config in live:
            sources = {"": config, **config.linked}
            opened_files = {name: OpenedFile.list(each.source) for name, each in sources.items()}
            versions = {
                name: each.version or _make_version(opened_files[name], sources[name].csv_format, ledger)
                for name, each in {"": config.dataset, **config.dataset.tables}.items()
            }
            tables = {name: replace(each, version=versions[name]) for name, each in config.dataset.tables.items()}
            dataset = replace(config.dataset, version=versions[""], tables=tables)
            settings = config.session_settings
            linked = {name: DataSource(each.source, each.csv_format, settings) for name, each in config.linked.items()}
            with divide_memory(len(live)):
                backend = open_source(config.source, dataset, progress, config.csv_format, linked, settings)
            if backend.state and not config.dataset.version:
                dataset = replace(dataset, version=_sign_version(backend.state, ledger))
            files = tuple(file for each in opened_files.values() for file in each)
            opened = datasets[dataset.name] = OpenDataset(dataset, backend, files)
            if dataset.neighbours is Neighbours.REPLACE and dataset.covers_everyone:
                datasets[dataset.name] = replace(opened, dataset=replace(dataset, size=backend.count_units()))
            declaration = _make_declaration(dataset)
            if record:
                ledger.declare(declaration)
            else:
                ledger.check_declaration(declaration)
    except BaseException:
        for held in datasets.values():
            held.backend.close()
        ledger.close()
        raise
    return datasets


def _make_declaration(dataset: Dataset) -> Declaration:
    budget = dataset.budget
    if budget is None:
        raise AssertionError("a data set that is opened has a budget")
    return Declaration(
        dataset.name,
        dataset.version,
        budget.epsilon,
        budget.delta,
        dataset.min_epsilon,
        "concentrated" if budget.concentrated else "pure",
        find_promise(dataset),
        tuple(name for name, table in dataset.tables.items() if not table.public),
        tuple(name for name, table in dataset.tables.items() if table.public),
    )


def find_promise(dataset: Dataset) -> Promise:
    """What the ε of its answers promise, and to whom, as it is declared and compared with what was declared before.

    It decides what the sum of all ε means. Nothing else that can be declared does: how a record is read, what may be
    asked, and with how much noise, is each answer's own, and each answer keeps the promise for its ε.
    """
    return Promise(dataset.neighbours.value, dataset.protection.promise, describe_unit(dataset))


def describe_unit(dataset: Dataset) -> str:
    """What tells people apart, in every table with rows of theirs: who an answer is promised to; "" is each record.

    The ledger compares it with what was declared before, so whatever has no order is sorted.
    """
    links = sorted(
        f"{quote(table.name)}.{quote(column)} = {quote(link.table)}.{quote(key)}"
        for table in list_tables(dataset)
        for link in table.links
        if not find_table(dataset, link.table).public
        for column, key in link.pairs
    )
    unit = ", ".join(sorted(map(quote, dataset.unit)))
    return ", ".join([f"{unit} with {links[0]}", *links[1:]]) if links else unit


def _make_version(files: Sequence[OpenedFile], csv_format: CsvFormat | None, ledger: Ledger) -> str:
    """A version that changes with the size or time of a file, or with how it is read, never with its content.

    Analysts see versions, and a size tells about the records: it is hashed under the ledger's key. A table in memory
    has none of its own.
    """
    if not files:
        return "as opened"
    facts = describe_files(files)
    return _sign_version(facts if csv_format is None else f"{facts}\n{csv_format}", ledger)


def _sign_version(facts: str, ledger: Ledger) -> str:
    return f"file {hmac.digest(ledger.derive(VERSION_PURPOSE), facts.encode(), 'sha256').hex()[:16]}"
