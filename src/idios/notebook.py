"""``%%idios``: a cell of a notebook that is a question. ``%load_ext idios`` adds it.

    %%idios -e 0.5                 ask what the cell says, for ε = 0.5, of the only party in the notebook
    SELECT MEDIAN(income) FROM people

    %%idios -e 0.5 --quote         say what that would cost and promise; free
    %%idios -e 0.5 --sandbox       answer about invented data; free
    %%idios -e 0.5 -p party        ask this party, where there are several
    %%idios -e 0.5 -o medians      and keep the answer in a variable
    %idios                         what is left of the budgets
    %idios -e 0.5 --quote SELECT MEDIAN(income) FROM people

Nothing is spent without an ε, and none is remembered. IPython is not imported: the shell that loads the extension is
all that is needed of it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from idios.client import RemoteParty
from idios.display import Listing
from idios.errors import InvalidInput
from idios.model import Answer, Balance, Quote
from idios.party import TrustedParty

Party = TrustedParty | RemoteParty
USAGE = "%%idios -e EPSILON [--quote | --sandbox] [-p PARTY] [-o VARIABLE], and the question in the lines below"

_OPTION = re.compile(
    r"""\s*(?:(?P<free>--quote|--sandbox)
    |(?:-e|--epsilon)[ =](?P<epsilon>\S+)
    |(?:-p|--party)[ =](?P<party>\S+)
    |(?:-o|--output)[ =](?P<output>\S+)
    )(?=\s|$)""",
    re.VERBOSE,
)


@dataclass(frozen=True)
class Request:
    """A line of the magic, read: the question may follow it there or in the cell."""

    sql: str = ""
    epsilon: str | None = None
    party: str | None = None
    output: str | None = None
    free: str | None = None


def register(shell: Any) -> None:
    """Add the magic to an IPython shell."""

    def idios(line: str, cell: str | None = None) -> Any:
        return ask(shell.user_ns, line, cell)

    idios.__doc__ = __doc__
    shell.register_magic_function(idios, magic_kind="line_cell", magic_name="idios")


def ask(variables: dict[str, Any], line: str, cell: str | None = None) -> Answer | Quote | Listing[Balance]:
    """Do what a cell says, with the variables of its notebook."""
    request = read_line(line, cell)
    party = find_party(variables, request.party)
    if not request.sql:
        if cell is not None or request.epsilon or request.free:
            raise InvalidInput(f"there is no question: write {USAGE}")
        return party.budget()
    if request.epsilon is None:
        raise InvalidInput(f"say what the question may cost: {USAGE}")
    if request.output is not None and not request.output.isidentifier():
        raise InvalidInput(f"-o names a variable, got {request.output!r}")
    methods = {"--quote": party.quote, "--sandbox": party.sandbox, None: party.query}
    found: Answer | Quote = methods[request.free](request.sql, request.epsilon)
    if request.output is not None:
        variables[request.output] = found
    return found


def read_line(line: str, cell: str | None = None) -> Request:
    """Read the options; what follows them, or the cell, is the question.

    >>> read_line("-e 0.5 --quote SELECT COUNT(*) FROM people;")
    Request(sql='SELECT COUNT(*) FROM people', epsilon='0.5', party=None, output=None, free='--quote')
    """
    found: dict[str, Any] = {}
    at = 0
    while option := _OPTION.match(line, at):
        at = option.end()
        found |= {name: value for name, value in option.groupdict().items() if value is not None}
    rest = line[at:].strip()
    if rest.startswith("-") and not rest.startswith("-- "):  # which is a comment of SQL
        raise InvalidInput(f"{rest.split()[0]} is not known: {USAGE}")
    if rest and cell is not None:
        raise InvalidInput(f"{rest!r} is not known: {USAGE}")
    return Request((rest if cell is None else cell).strip().removesuffix(";").strip(), **found)


def find_party(variables: dict[str, Any], name: str | None = None) -> Party:
    """The party of this name, or the only one among the variables."""
    if name is not None:
        found = variables.get(name)
        if not isinstance(found, Party):
            raise InvalidInput(f"there is no party {name!r}: open one with idios.TrustedParty.open or idios.connect")
        return found
    parties = {key: value for key, value in variables.items() if isinstance(value, Party) and not key.startswith("_")}
    if len({id(party) for party in parties.values()}) == 1:
        return next(iter(parties.values()))
    if parties:
        raise InvalidInput(f"there are several parties: say which, with -p and one of {', '.join(sorted(parties))}")
    raise InvalidInput("there is no party yet: open one with idios.TrustedParty.open or idios.connect")
