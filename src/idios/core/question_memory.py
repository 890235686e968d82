"""What is computed once for a question and forgotten with it.

How long a quote takes would tell whether another analyst drafted the same literals or the same ε, if what follows from
them were kept for the next caller. So every question begins with nothing (``one_question``). What is computed outside
of questions, such as noise for arrays, is no analyst's and is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache, wraps
from typing import Any, ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
T = TypeVar("T")
_memory: ContextVar[dict[Callable[..., Any], Callable[..., Any]] | None] = ContextVar("memory", default=None)


@contextmanager
def one_question() -> Iterator[None]:
    """The steps of one question, or of one within another, which remember the same."""
    if _memory.get() is not None:
        yield
        return
    token = _memory.set({})
    try:
        yield
    finally:
        _memory.reset(token)


def remembered(most: int) -> Callable[[Callable[Arguments, T]], Callable[Arguments, T]]:
    """Keep so many results of a function, those of one question no longer than it lasts.

    >>> calls = []
    >>> double = remembered(9)(lambda number: calls.append(number) or 2 * number)
    >>> for _ in range(2):
    ...     with one_question():
    ...         double(4), double(4)
    (8, 8)
    (8, 8)
    >>> calls
    [4, 4]
    """

    def decorate(function: Callable[Arguments, T]) -> Callable[Arguments, T]:
        kept = lru_cache(most)(function)

        @wraps(function)
        def call(*args: Arguments.args, **kwargs: Arguments.kwargs) -> T:
            memory = _memory.get()
            if memory is not None and function not in memory:
                memory[function] = lru_cache(most)(function)
            found: Callable[..., T] = kept if memory is None else memory[function]
            return found(*args, **kwargs)

        return call

    return decorate
