"""``idios analyst``: who may ask, and how much each may spend."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from idios.cli import output
from idios.codec import to_json
from idios.config import read_configuration
from idios.core.exact import exact, text
from idios.ledger import Ledger, Role
from idios.model import BalanceList
from idios.party import TrustedParty

app = typer.Typer(
    help="Who may ask about which data set, and how much each may spend.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)

Config = Annotated[Path, typer.Option(help="The configuration file.")]
DEFAULT = Path("idios.toml")


@contextmanager
def open_ledger(config: Path) -> Iterator[Ledger]:
    """The ledger that a configuration names."""
    configuration = read_configuration(config)
    with Ledger.open(configuration.ledger_url, configuration.key_file) as ledger:
        yield ledger


@app.command()
def add(name: str, config: Config = DEFAULT) -> None:
    """Make an analyst known; before a grant they may ask nothing."""
    with open_ledger(config) as ledger:
        ledger.add_analyst(name)
    output.console.print(f"{name} is known. Next: idios analyst grant {name} DATASET --epsilon 1", highlight=False)


@app.command()
def grant(
    name: str,
    dataset: str,
    epsilon: Annotated[str | None, typer.Option(help="Their own cap; without one, the data set's budget.")] = None,
    delta: Annotated[str | None, typer.Option(help="Their own cap on δ.")] = None,
    config: Config = DEFAULT,
) -> None:
    """Let an analyst ask about a data set, up to a cap of their own; a second grant replaces the cap."""
    record_dataset(dataset, config)
    with open_ledger(config) as ledger:
        balance = ledger.grant(
            name,
            dataset,
            epsilon=None if epsilon is None else exact(epsilon, "epsilon"),
            delta=None if delta is None else exact(delta, "delta"),
        )
        total = next((each.epsilon for each in ledger.datasets() if each.dataset == dataset), None)
    if epsilon is not None and total is not None and exact(epsilon, "epsilon") > total:
        output.stderr.print(f"their cap is above the budget of {dataset}, ε = {text(total)}, which ends earlier")
    output.console.print(f"{name} may ask about {dataset}; remaining: {balance.left_in_words}", highlight=False)


def record_dataset(name: str, config: Path) -> None:
    """Record a configured data set of which nothing is on record yet, as its first question would."""
    with open_ledger(config) as ledger:
        known = any(each.dataset == name for each in ledger.datasets()) or ledger.retired(name)
    if not known and name in read_configuration(config).datasets:
        TrustedParty.from_config(config, retired=False).close()


@app.command()
def withdraw(name: str, dataset: str, config: Config = DEFAULT) -> None:
    """End an analyst's grant on a data set; what they have spent stays spent, should they get a new one."""
    with open_ledger(config) as ledger:
        ledger.withdraw(name, dataset)
    output.console.print(f"{name} may no longer ask about {dataset}", highlight=False)


@app.command()
def token(
    name: str,
    days: Annotated[int, typer.Option(help="How long it is valid.")] = 90,
    controller: Annotated[
        bool, typer.Option("--controller", help="For a controller, who may do everything and need not be added.")
    ] = False,
    config: Config = DEFAULT,
) -> None:
    """Issue a token for the server; it is shown once and stored only as a hash."""
    role = Role.CONTROLLER if controller else Role.ANALYST
    with open_ledger(config) as ledger:
        secret = ledger.issue_token(name, role=role, lifetime=timedelta(days=days)).secret
        output.console.out(secret, highlight=False)
        public = ledger.authenticate(secret).token
        issued = next(token for token in ledger.tokens() if token.token == public)
    output.stderr.print(f"token {issued.token} of {name}, valid until {issued.expires[:10]}", highlight=False)


@app.command()
def revoke(name: Annotated[str, typer.Argument(help="The token's name, as listed.")], config: Config = DEFAULT) -> None:
    """Accept a token no longer."""
    with open_ledger(config) as ledger:
        ledger.revoke_token(name)
    output.console.print(f"token {name} is revoked", highlight=False)


@app.command()
def tokens(config: Config = DEFAULT) -> None:
    """List the names of all tokens, whose they are and when they expire."""
    with open_ledger(config) as ledger:
        known = ledger.tokens()
    table = Table()
    for head in ("token", "holder", "role", "expires", "revoked"):
        table.add_column(head)
    for token in known:
        revoked = "yes" if token.revoked is not None else ""
        table.add_row(token.token, token.holder, token.role, token.expires[:19], revoked)
    output.print_table(table)


@app.command("list")
def list_analysts(
    config: Config = DEFAULT, json: Annotated[bool, typer.Option("--json", help="Print exact JSON.")] = False
) -> None:
    """List analysts with their grants; with --json also their tokens."""
    with open_ledger(config) as ledger:
        names, grants, tokens = ledger.analysts(), ledger.grants(), ledger.tokens()
    if json:
        output.print_json(
            {
                "analysts": names,
                "grants": [
                    {
                        "analyst": grant.analyst,
                        "dataset": grant.dataset,
                        "budget": text(grant.epsilon.budget),
                        "spent": text(grant.epsilon.spent),
                        "remaining": text(grant.epsilon.remaining),
                        **({} if grant.rho is None else {"rho": to_json(grant.rho)}),
                    }
                    for grant in grants
                ],
                "tokens": [
                    {"token": token.token, "holder": token.holder, "role": token.role, "expires": token.expires}
                    for token in tokens
                ],
            }
        )
        return
    known = BalanceList(tuple(grants))
    table = Table("analyst", "data set", "cap ε", *_without_delta(known.head)[1:])
    for name in names:
        own = [(grant.dataset, *_without_delta(known.cells(grant))) for grant in grants if grant.analyst == name]
        for cells in own or [("no grant",)]:
            table.add_row(name, *cells)
    output.print_balances(table, known)


def _without_delta(cells: tuple[str, ...]) -> tuple[str, ...]:
    """What a narrow table has of a balance."""
    return cells[:3] + cells[4:]
