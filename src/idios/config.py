"""``idios.toml``: what a controller writes, read strictly.

Rules:

1. A key that is not known is an error that lists the known ones; nothing is ignored.
2. Everything declared is public. Nothing is completed by looking at the data.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from idios.backends.csv import CsvFormat
from idios.core.calibration import Level, Protection
from idios.core.domain import Categories, Domain, Kind, default_step
from idios.core.exact import exact, positive, whole
from idios.core.neighbours import Neighbours
from idios.core.statistics import Parameters
from idios.errors import ConfigurationError, InvalidInput
from idios.query.calendar import since_1970
from idios.query.schema import Column, Dataset
from idios.settings import LEDGER_VARIABLES, Settings, read_settings
from idios.sharing import sharing

MIN_EPSILON = Fraction(1, 20)
MAX_GROUPS = 1000
DELTA_QUESTIONS = 100
"""How many questions the δ budget allows, unless ``delta_budget`` is declared."""
RELEASE_SECONDS = Fraction(1, 4)
"""When a server's answers leave at `differential`: after this time, twice, four times it, …"""

COLUMN_KEYS = ("type", "step", "bounds", "nullable", "values", "decimals")
DATASET_KEYS = (
    "source",
    "csv",
    "shares_source",
    "version",
    "neighbours",
    "protection",
    "analysts",
    "group",
    "delta",
    "delta_budget",
    "floor",
    "fineness",
    "width",
    "budget",
    "min_epsilon",
    "max_groups",
    "parameters",
    "release_seconds",
    "columns",
)
LEDGER_KEYS = ("url", "key_file")
PARAMETER_KEYS = ("quantile", "k", "trim")


@dataclass(frozen=True)
class Declared:
    """One data set of a configuration: what is public, where the data is, and what may be spent."""

    dataset: Dataset
    source: str = field(repr=False)  # an address may hold a password
    budget: Fraction
    delta_budget: Fraction
    csv_format: CsvFormat = field(default_factory=CsvFormat)
    analysts_trusted: bool = False
    release_seconds: Fraction = Fraction(0)
    shares_source: bool = False


@dataclass(frozen=True)
class Configuration:
    """A whole ``idios.toml``; paths in it are relative to its own folder."""

    folder: Path
    ledger_url: str = field(repr=False)  # and so may this one
    key_file: Path | None
    datasets: Mapping[str, Declared]
    server: Settings


def read_configuration(path: str | Path, environment: Mapping[str, str] | None = None) -> Configuration:
    """Read and check a configuration file; what the environment says of the ledger and the server comes first."""
    variables = os.environ if environment is None else environment
    file = Path(path)
    try:
        raw = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigurationError(f"there is no configuration file {file}; `idios init` writes one") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigurationError(f"{file} cannot be read: {error}") from None
    _only(raw, ("ledger", "server", "datasets"), str(file))
    ledger = dict(_table(raw, "ledger", str(file)))
    _only(ledger, LEDGER_KEYS, "[ledger]")
    ledger |= {key: variables[name] for key, name in LEDGER_VARIABLES.items() if name in variables}
    datasets = _table(raw, "datasets", str(file))
    if not datasets:
        raise ConfigurationError(f"{file} declares no data set: add a table [datasets.NAME]")
    folder = file.resolve().parent
    url = str(ledger.get("url", "sqlite:///ledger.db"))
    if url.startswith("sqlite:///") and not url.startswith("sqlite:////"):
        url = f"sqlite:///{folder / url.removeprefix('sqlite:///')}"
    key_file = folder / str(ledger["key_file"]) if "key_file" in ledger else None
    found = {name: declare(name, _table(datasets, name, str(file)), folder) for name in datasets}
    _refuse_sharing(found)
    return Configuration(folder, url, key_file, found, read_settings(_table(raw, "server", str(file)), variables))


def declare(name: str, given: Mapping[str, Any], folder: Path | None = None) -> Declared:
    """Check what is declared of one data set."""
    where = f"[datasets.{name}]"
    _only(given, DATASET_KEYS, where)
    for key in ("source", "budget", "columns"):
        if key not in given:
            raise ConfigurationError(f"{where} needs {key}")
    source = str(given["source"])
    if folder is not None and ":" not in source.partition("::")[0] and not Path(source).is_absolute():
        source = str(folder / source)
    try:
        protection = Protection.declare(
            given.get("protection", "individual"),
            group=given.get("group"),
            delta=given.get("delta"),
            floor=given.get("floor"),
            **{key: given[key] for key in ("fineness", "width") if key in given},
        )
        dataset = Dataset(
            name=name,
            columns=read_columns(given["columns"]),
            neighbours=Neighbours.named(given.get("neighbours", "replace")),
            protection=protection,
            min_epsilon=positive(given.get("min_epsilon", MIN_EPSILON), "min_epsilon"),
            max_groups=whole(given.get("max_groups", MAX_GROUPS), "max_groups"),
            parameters=read_parameters(given.get("parameters", {})),
            version=str(given["version"]) if "version" in given else "",
        )
        budget = positive(given["budget"], "budget")
        default = protection.delta * DELTA_QUESTIONS
        delta_budget = exact(given["delta_budget"], "delta_budget") if "delta_budget" in given else default
        usual = RELEASE_SECONDS if protection.level is Level.DIFFERENTIAL else Fraction(0)
        csv_format = read_csv_format(given.get("csv"), source)
        release_seconds = exact(given.get("release_seconds", usual), "release_seconds")
        if not 0 <= release_seconds <= 60:
            raise InvalidInput(f"release_seconds must be from 0 (no padding) to 60, got {given['release_seconds']!r}")
    except InvalidInput as error:
        raise ConfigurationError(f"{where}: {error}") from None
    analysts = given.get("analysts")
    if analysts not in (None, "trusted"):
        raise ConfigurationError(f'{where}: analysts must be "trusted" where it is given, got {analysts!r}')
    shares_source = given.get("shares_source", False)
    if not isinstance(shares_source, bool):
        raise ConfigurationError(f"{where}: shares_source must be true or false, got {shares_source!r}")
    delta_budget = min(delta_budget, Fraction(1))
    return Declared(
        dataset, source, budget, delta_budget, csv_format, analysts == "trusted", release_seconds, shares_source
    )


def read_csv_format(given: Any, source: Any) -> CsvFormat:
    """Check the declared format of a csv file; RFC 4180 where nothing is declared."""
    if given is None:
        return CsvFormat()
    if not isinstance(given, Mapping):
        raise InvalidInput(f'csv must be a table such as {{ delimiter = ";", decimal = "," }}, got {given!r}')
    if not str(source).lower().endswith(".csv"):
        raise InvalidInput("csv declares the format of a .csv file, and the source is none")
    return CsvFormat.declare(given)


def _refuse_sharing(declared: Mapping[str, Declared]) -> None:
    """Two budgets for the same people are meant, and said to be, or refused."""
    for names in sharing({name: one.source for name, one in declared.items()}):
        if not all(declared[name].shares_source for name in names):
            listed = " and ".join(f"[datasets.{name}]" for name in names)
            count = "two" if len(names) == 2 else len(names)
            raise ConfigurationError(
                f"{listed} have one source: they are {count} budgets for the same people, whose ε add up. Declare one "
                "data set, or shares_source = true in each of them if that is meant"
            )


def read_columns(given: Mapping[str, Any]) -> dict[str, Column]:
    """Check the declared columns; each is a table of its type and what belongs to that."""
    if not isinstance(given, Mapping) or not given:
        raise InvalidInput("columns must be a table of at least one column")
    return {str(name): read_column(str(name), declared) for name, declared in given.items()}


def read_column(name: str, given: Any) -> Column:
    """Check one column.

    >>> read_column("age", {"type": "integer", "bounds": [0, 120], "nullable": False}).grid
    Domain(step=Fraction(1, 1), lower=0, upper=120)
    """
    if isinstance(given, Column):
        return given
    if isinstance(given, str):
        given = {"type": given}
    if not isinstance(given, Mapping) or "type" not in given:
        raise InvalidInput(f'column {name!r} must be a table with a type, such as {{ type = "integer" }}')
    unknown = [key for key in given if key not in COLUMN_KEYS]
    if unknown:
        raise InvalidInput(f"column {name!r}: {unknown[0]!r} is not known; known are {', '.join(COLUMN_KEYS)}")
    declared = dict(given)
    if declared["type"] == "boolean":
        declared |= {"type": "integer", "bounds": (0, 1)}
    try:
        kind = Kind(declared["type"])
    except ValueError:
        types = ", ".join([*Kind, "boolean"])
        raise InvalidInput(f"column {name!r}: type must be one of {types}, got {declared['type']!r}") from None
    nullable = declared.get("nullable", True)
    if not isinstance(nullable, bool):
        raise InvalidInput(f"column {name!r}: nullable must be true or false, got {nullable!r}")
    try:
        domain = _domain(kind, declared)
    except InvalidInput as error:
        raise InvalidInput(f"column {name!r}: {error}") from None
    return Column(name, kind, domain, nullable)


def _domain(kind: Kind, given: Mapping[str, Any]) -> Domain | Categories:
    if kind is Kind.CATEGORY:
        for key in ("step", "bounds", "decimals"):
            if key in given:
                raise InvalidInput(f"{key} belongs to numeric columns; a category declares values")
        values = given.get("values")
        if not isinstance(values, Sequence) or isinstance(values, str):
            raise InvalidInput('a category column declares its values, such as values = ["a", "b"]')
        return Categories(tuple(str(value) for value in values))
    if "values" in given:
        raise InvalidInput("values belong to category columns")
    decimals = whole(given["decimals"], "decimals", least=0) if "decimals" in given else None
    if kind is Kind.DECIMAL and decimals is None and "step" not in given:
        raise InvalidInput("a decimal column declares its step, such as step = 0.01, or its decimals")
    step = given.get("step", default_step(kind, decimals or 0))
    bounds = given.get("bounds")
    if bounds is not None and kind in (Kind.DATE, Kind.TIMESTAMP):
        if not isinstance(bounds, Sequence) or isinstance(bounds, str) or len(bounds) != 2:
            raise InvalidInput(f"bounds must be a pair (lower, upper), got {bounds!r}")
        bounds = tuple(None if b is None else _read_bound(b, kind) for b in bounds)
    return Domain.declare(step=step, bounds=bounds)


def _read_bound(moment: Any, kind: Kind) -> Fraction:
    """A bound of a date or timestamp column as a number."""
    try:
        return since_1970(moment, kind)
    except ValueError:
        raise InvalidInput(f"a bound must be a date such as 2026-01-31, got {moment!r}") from None


def read_parameters(given: Any) -> Parameters:
    """Check which ranks, orders and shares analysts may name; false lifts a restriction."""
    if isinstance(given, Parameters):
        return given
    if not isinstance(given, Mapping):
        raise InvalidInput("parameters must be a table of quantile, k and trim")
    unknown = [key for key in given if key not in PARAMETER_KEYS]
    if unknown:
        raise InvalidInput(f"parameters: {unknown[0]!r} is not known; known are {', '.join(PARAMETER_KEYS)}")
    usual = Parameters()
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


def _only(given: Mapping[str, Any], known: Sequence[str], where: str) -> None:
    unknown = [key for key in given if key not in known]
    if unknown:
        raise ConfigurationError(f"{where}: {unknown[0]!r} is not known; known are {', '.join(known)}")


def _table(given: Mapping[str, Any], key: str, where: str) -> Mapping[str, Any]:
    found = given.get(key, {})
    if not isinstance(found, Mapping):
        raise ConfigurationError(f"{where}: {key} must be a table")
    return found
