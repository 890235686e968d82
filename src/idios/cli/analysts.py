"""``idios analyst``: who may ask, and how much each may spend."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from idios.cli import show
from idios.config import read_configuration
from idios.core.exact import exact, text
from idios.ledger import Ledger, Role

app = typer.Typer(help="Who may ask about which data set, and how much each may spend.", no_args_is_help=True)

Config = Annotated[Path, typer.Option(help="The configuration file.")]
DEFAULT = Path("idios.toml")


@contextmanager
def opened_ledger(config: Path) -> Iterator[Ledger]:
    """The ledger that a configuration names."""
    configuration = read_configuration(config)
    with Ledger.open(configuration.ledger_url, configuration.key_file) as ledger:
        yield ledger


@app.command()
def add(name: str, config: Config = DEFAULT) -> None:
    """Make an analyst known; before a grant they may ask nothing."""
    with opened_ledger(config) as ledger:
        ledger.add_analyst(name)
    show.out.print(f"{name} is known. Next: idios analyst grant {name} DATASET --epsilon 1", highlight=False)


@app.command()
def grant(
    name: str,
    dataset: str,
    epsilon: Annotated[str | None, typer.Option(help="Their own cap; without one, the data set's budget.")] = None,
    delta: Annotated[str | None, typer.Option(help="Their own cap on δ.")] = None,
    config: Config = DEFAULT,
) -> None:
    """Let an analyst ask about a data set, up to a cap of their own; a second grant replaces the cap."""
    with opened_ledger(config) as ledger:
        balance = ledger.grant(
            name,
            dataset,
            epsilon=None if epsilon is None else exact(epsilon, "epsilon"),
            delta=None if delta is None else exact(delta, "delta"),
        )
    left = show.number(balance.epsilon.remaining)
    show.out.print(f"{name} may ask about {dataset}; remaining: ε = {left}", highlight=False)


@app.command()
def withdraw(name: str, dataset: str, config: Config = DEFAULT) -> None:
    """End an analyst's grant on a data set; what they have spent stays spent, should they get a new one."""
    with opened_ledger(config) as ledger:
        ledger.withdraw(name, dataset)
    show.out.print(f"{name} may no longer ask about {dataset}", highlight=False)


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
    with opened_ledger(config) as ledger:
        secret = ledger.issue_token(name, role=role, lifetime=timedelta(days=days))
        show.out.out(secret, highlight=False)
        public = ledger.authenticate(secret).token
        issued = next(one for one in ledger.tokens() if one.token == public)
    show.errors.print(f"token {issued.token} of {name}, valid until {issued.expires[:10]}", highlight=False)


@app.command()
def revoke(name: Annotated[str, typer.Argument(help="The token's name, as listed.")], config: Config = DEFAULT) -> None:
    """Accept a token no longer."""
    with opened_ledger(config) as ledger:
        ledger.revoke_token(name)
    show.out.print(f"token {name} is revoked", highlight=False)


@app.command()
def tokens(config: Config = DEFAULT) -> None:
    """List the names of all tokens, whose they are and when they expire."""
    with opened_ledger(config) as ledger:
        known = ledger.tokens()
    table = Table()
    for head in ("token", "holder", "role", "expires", "revoked"):
        table.add_column(head)
    for one in known:
        revoked = "yes" if one.revoked is not None else ""
        table.add_row(one.token, one.holder, one.role, one.expires[:19], revoked)
    show.out.print(table)


@app.command("list")
def listed(
    config: Config = DEFAULT, json: Annotated[bool, typer.Option("--json", help="Print exact JSON.")] = False
) -> None:
    """List analysts with their grants; with --json also their tokens."""
    with opened_ledger(config) as ledger:
        names, grants, tokens = ledger.analysts(), ledger.grants(), ledger.tokens()
    if json:
        show.as_json(
            {
                "analysts": names,
                "grants": [
                    {
                        "analyst": one.analyst,
                        "dataset": one.dataset,
                        "budget": text(one.epsilon.budget),
                        "spent": text(one.epsilon.spent),
                        "remaining": text(one.epsilon.remaining),
                    }
                    for one in grants
                ],
                "tokens": [
                    {"token": one.token, "holder": one.holder, "role": one.role, "expires": one.expires}
                    for one in tokens
                ],
            }
        )
        return
    table = Table()
    for head in ("analyst", "data set", "cap ε", "spent ε", "remaining ε"):
        table.add_column(head)
    for name in names:
        own = [one for one in grants if one.analyst == name]
        for one in own:
            account = one.epsilon
            table.add_row(
                name,
                one.dataset,
                show.number(account.budget),
                show.number(account.spent),
                show.number(account.remaining),
            )
        if not own:
            table.add_row(name, "no grant", "", "", "")
    show.out.print(table)
