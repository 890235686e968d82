"""Everything Idios raises on purpose.

    IdiosError
    ├── InvalidInput        a parameter is not acceptable: ε, step, bounds, q, k, …
    └── Unanswerable        well formed, but no mechanism at this level can answer it

Rules:

1. A message names what was given, what is required and what to do instead.
2. No message ever contains a value of the data.
3. Anything else that escapes is a bug.
"""

from __future__ import annotations


class IdiosError(Exception):
    """Any failure that Idios foresees; catch this one to catch them all."""


class InvalidInput(IdiosError, ValueError):
    """A parameter was given that is not acceptable, whatever the data."""


class Unanswerable(IdiosError):
    """The question is well formed, but the declared facts do not allow an answer at this level."""
