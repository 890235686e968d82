"""Who somebody is who shows a token: a name, a role, and the token that says so."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Role(StrEnum):
    """What a token's holder is to the server."""

    ANALYST = "analyst"
    CONTROLLER = "controller"


@dataclass(frozen=True, slots=True)
class Identity:
    """The holder of a valid token; `token` is its public name."""

    name: str
    role: Role
    token: str
