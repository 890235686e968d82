"""``idios query``, ``quote`` and ``inspect``: a question about a file, or about a configured data set."""

from __future__ import annotations

import re
import shlex
from fractions import Fraction
from os.path import exists  # Path.exists fails where a text is too long for a name
from pathlib import Path
from typing import Annotated

import typer

from idios.cli import output
from idios.cli.init import Header, Yes, declare_file
from idios.cli.undeclared import explain_undeclared
from idios.core.exact import exact
from idios.display import format_short
from idios.errors import InvalidInput
from idios.party import TrustedParty

_SELECT = re.compile(r"\s*SELECT\s", re.IGNORECASE)

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
        help='How ε is split, one for each statistic that a quote names: -s "MEDIAN(income)=2" -s "AVG(age)=1"; evenly '
        "unless given.",
    ),
]
Check = Annotated[
    str | None,
    typer.Option(
        help="The share of ε that tells how many records off each answer is, such as 0.2; 0 for none; as declared "
        "unless given."
    ),
]
ThenCheck = Annotated[
    str | None,
    typer.Option(
        help="Instead of asking: the ε that tells how many records off the answer is that this question was given "
        "without a check."
    ),
]
Analyst = Annotated[str | None, typer.Option(help="Ask on behalf of this analyst, charged to their own cap as well.")]
Protection = Annotated[
    str | None,
    typer.Option(
        help="The level of a file that is not declared yet, differential unless individual is named: declares it as "
        "proposed, without asking, and with a budget of 10 unless given."
    ),
]
Unit = Annotated[
    str | None,
    typer.Option(
        help="Of a file that is not declared yet: the column that tells people apart who may have several rows, or "
        "none where each record is protected by itself."
    ),
]
Within = Annotated[
    str | None,
    typer.Option(
        help="Instead of --epsilon: the least ε for a public 95 % margin of each column within this, in its units, or "
        "a share such as 2%, of the number of records for a count, of the largest possible sum for a sum. Of a ratio: "
        "'5 at 600' is 5 where it is divided by 600."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print exact JSON.")]


def query(
    source: Source,
    sql: Sql = None,
    epsilon: Epsilon = "",
    budget: Budget = None,
    config: Config = None,
    split: Split = None,
    check: Check = None,
    then_check: ThenCheck = None,
    analyst: Analyst = None,
    header: Header = None,
    yes: Yes = False,
    protection: Protection = None,
    unit: Unit = None,
    json: Json = False,
) -> None:
    """Ask a question, spend ε, get a private answer.

    Statistics are charged. What is computed from them is free: ratios, ROUND, CASE, HAVING, ORDER BY, LIMIT, a SELECT
    around another.

    Without a configuration the types of the file's columns are proposed for you to confirm (--yes confirms them, and a
    budget of 10), no bounds are assumed, and one record may change while their number is public; an idios.toml that
    says so and a ledger are written beside the file. It promises differential privacy, without any bounds, unless
    --protection individual chooses noise that is fitted to the data.
    """
    question, path = _read_target(source, sql, config, budget, header, yes, protection, unit)
    with (
        output.show_progress() as progress,
        TrustedParty.from_config(path, progress=progress) as party,
        explain_undeclared(path),
    ):
        cost, parts = _require_epsilon(epsilon), _read_split(split)
        if _is_asked(check, then_check):
            answer = party.query(question, cost, split=parts, check=check, analyst=analyst)
        else:
            answer = party.check(question, cost, with_epsilon=str(then_check), split=parts, analyst=analyst)
    if json:
        output.print_json(answer.to_dict())
    else:
        output.print_answer(answer)


def quote(
    source: Source,
    sql: Sql = None,
    epsilon: Epsilon = "",
    budget: Budget = None,
    config: Config = None,
    within: Within = None,
    split: Split = None,
    check: Check = None,
    then_check: ThenCheck = None,
    analyst: Analyst = None,
    header: Header = None,
    yes: Yes = False,
    protection: Protection = None,
    unit: Unit = None,
    json: Json = False,
) -> None:
    """Show what a question would cost and promise, before anything is spent; no data is read."""
    question, path = _read_target(source, sql, config, budget, header, yes, protection, unit)
    with TrustedParty.from_config(path) as party, explain_undeclared(path):
        if within is not None:
            if epsilon or split or check or then_check:
                raise InvalidInput("--within finds ε: leave out --epsilon, --split, --check and --then-check")
            epsilon = str(party.find_epsilon(question, within))
            output.stderr.print(f"within {within}: --epsilon {format_short(Fraction(epsilon))}", highlight=False)
        cost, parts = _require_epsilon(epsilon), _read_split(split)
        _is_asked(check, then_check)
        quoted = party.quote(question, cost, split=parts, check=check, then_check=then_check, analyst=analyst)
    if json:
        output.print_json(quoted.to_dict())
    else:
        output.print_quote(quoted)


def inspect(
    source: Source,
    sql: Sql = None,
    epsilon: Epsilon = "",
    budget: Budget = None,
    config: Config = None,
    split: Split = None,
    header: Header = None,
    yes: Yes = False,
    protection: Protection = None,
    unit: Unit = None,
    json: Json = False,
) -> None:
    """Show the controller the true values, envelopes and noise behind a question; charges nothing, is recorded."""
    question, path = _read_target(source, sql, config, budget, header, yes, protection, unit)
    with (
        output.show_progress() as progress,
        TrustedParty.from_config(path, progress=progress) as party,
        explain_undeclared(path),
    ):
        inspection = party.inspect(question, _require_epsilon(epsilon), split=_read_split(split))
    if json:
        output.print_json(inspection.to_dict())
    else:
        output.print_inspection(inspection)


def _read_target(
    source: str,
    sql: str | None,
    config: str | None,
    budget: str | None,
    header: bool | None,
    yes: bool,
    protection: str | None,
    unit: str | None,
) -> tuple[str, Path]:
    """The question and the configuration that declares its data; a file that has none gets one."""
    if sql is None and (exists(source.partition("::")[0]) or len(source.split()) == 1):
        raise InvalidInput(f'the question is missing: write it after the file, {shlex.quote(source)} "SELECT … FROM …"')
    if sql is not None and _SELECT.match(source) and not _SELECT.match(sql):
        raise InvalidInput("the file comes first, and the question after it: they are the other way round here")
    if sql is None:
        if protection is not None or unit is not None:
            raise InvalidInput(
                "--protection and --unit declare a file; name it before the question, or declare them in the "
                "configuration"
            )
        return source, Path(config or "idios.toml")
    return sql, declare_file(source, config, budget, header, yes, protection, unit)


def _require_epsilon(given: str) -> str:
    if not given:
        raise InvalidInput("say what the question may cost, such as --epsilon 0.5")
    return given


def _is_asked(check: str | None, then_check: str | None) -> bool:
    """Whether the question itself is asked, and not a check of its answer."""
    if then_check is not None and check is not None and exact(check, "--check"):
        raise InvalidInput("--then-check is for an answer that was given without a check: leave out --check")
    return then_check is None


def _read_split(given: list[str] | None) -> dict[str, str] | None:
    if not given:
        return None
    pairs = [part.rpartition("=") for part in given]
    if any(not name for name, _, _ in pairs):
        raise InvalidInput('a part of --split is STATISTIC=NUMBER, such as -s "MEDIAN(income)=2"')
    return {name: number for name, _, number in pairs}
