"""The identity that a token proves: a name, a role, and the token's public name."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Role(StrEnum):
    """The role of a token's holder."""

    ANALYST = "analyst"
    CONTROLLER = "controller"


@dataclass(frozen=True, slots=True)
class Identity:
    """The holder of a valid token; `token` is its public name."""

    name: str
    role: Role
    token: str
