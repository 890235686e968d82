"""When answers leave: at r, 2r, 4r, … seconds after the question came, whatever the data took.

How long a question takes depends on the data a little: a bracket that missed, a scale that was drawn from before, an
empty selection. So an answer, a NULL and a failure all wait for the next of a few public moments; from the time an
analyst learns log₂ of the longest over the shortest at most, and almost always nothing.
"""

from __future__ import annotations


def release_after(elapsed: float, first: float) -> float:
    """The moment, in seconds after the question, at which something ready after ``elapsed`` leaves.

    >>> release_after(0.01, 0.25), release_after(0.3, 0.25), release_after(1.7, 0.25), release_after(1.7, 0)
    (0.25, 0.5, 2.0, 1.7)
    """
    if first <= 0:
        return elapsed
    moment = first
    while moment < elapsed:
        moment *= 2
    return moment
