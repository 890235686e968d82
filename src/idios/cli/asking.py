"""``idios query``, ``quote`` and ``inspect``: a question about a file, or about a configured data set."""

from __future__ import annotations

from typing import Annotated

import typer

from idios.cli import show
from idios.cli.files import Asked, Header, Yes, opened
from idios.errors import InvalidInput

Source = Annotated[
    str, typer.Argument(help="A data file (csv, parquet, file.duckdb::table), or the question if --config is used.")
]
Sql = Annotated[str | None, typer.Argument(help='The question, such as "SELECT MEDIAN(income) FROM people".')]
Epsilon = Annotated[str, typer.Option("--epsilon", "-e", help="What the whole question may cost, read exactly.")]
Budget = Annotated[
    str | None, typer.Option(help="The data set's total ε; asked for the first time, then kept in the ledger.")
]
Config = Annotated[str | None, typer.Option(help="The configuration file (default: idios.toml beside the data).")]
Split = Annotated[
    list[str] | None,
    typer.Option(
        "--split",
        "-s",
        help='How ε is split, one for each statistic: -s "MEDIAN(income)=2" -s "AVG(age)=1"; evenly unless given.',
    ),
]
Analyst = Annotated[str | None, typer.Option(help="Ask on behalf of this analyst, charged to their own cap as well.")]
Json = Annotated[bool, typer.Option("--json", help="Print exact JSON.")]


def query(
    source: Source,
    sql: Sql = None,
    epsilon: Epsilon = "",
    budget: Budget = None,
    config: Config = None,
    split: Split = None,
    analyst: Analyst = None,
    header: Header = None,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Ask a question, spend ε, get a private answer.

    Without a configuration the file's columns are proposed for you to confirm, no bounds are assumed, and an idios.toml
    and a ledger are written beside it.
    """
    asked = _asked(source, sql, config, budget, header, yes)
    with show.patience() as progress, opened(asked, progress) as party:
        answer = party.query(asked.sql, _epsilon(epsilon), split=_split(split), analyst=analyst)
    if json:
        show.as_json(answer.to_dict())
    else:
        show.answer(answer)


def quote(
    source: Source,
    sql: Sql = None,
    epsilon: Epsilon = "",
    budget: Budget = None,
    config: Config = None,
    split: Split = None,
    analyst: Analyst = None,
    header: Header = None,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Show what a question would cost and promise, before anything is spent; no data is read."""
    asked = _asked(source, sql, config, budget, header, yes)
    with opened(asked) as party:
        quoted = party.quote(asked.sql, _epsilon(epsilon), split=_split(split), analyst=analyst)
    if json:
        show.as_json(quoted.to_dict())
    else:
        show.quote(quoted)


def inspect(
    source: Source,
    sql: Sql = None,
    epsilon: Epsilon = "",
    budget: Budget = None,
    config: Config = None,
    split: Split = None,
    header: Header = None,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Show the controller the true values, envelopes and noise behind a question; charges nothing, is recorded."""
    asked = _asked(source, sql, config, budget, header, yes)
    with show.patience() as progress, opened(asked, progress) as party:
        inspected = party.inspect(asked.sql, _epsilon(epsilon), split=_split(split))
    if json:
        show.as_json(inspected.to_dict())
    else:
        show.inspection(inspected)


def _asked(
    source: str, sql: str | None, config: str | None, budget: str | None, header: bool | None, yes: bool
) -> Asked:
    if sql is None:
        return Asked(sql=source, source=None, config=config or "idios.toml", budget=budget)
    return Asked(sql=sql, source=source, config=config, budget=budget, header=header, yes=yes)


def _epsilon(given: str) -> str:
    if not given:
        raise InvalidInput("say what the question may cost, such as --epsilon 0.5")
    return given


def _split(given: list[str] | None) -> dict[str, str] | None:
    if not given:
        return None
    pairs = [part.rpartition("=") for part in given]
    if any(not name for name, _, _ in pairs):
        raise InvalidInput('a part of --split is STATISTIC=NUMBER, such as -s "MEDIAN(income)=2"')
    return {name: number for name, _, number in pairs}
