"""Noise: what is added to a value, one distribution a file."""

from idios.core.distributions.admissible import Admissible, paper_pair, tight_pair
from idios.core.distributions.discrete_laplace import DiscreteLaplace
from idios.core.distributions.inverse_sensitivity import InverseSensitivity
from idios.core.distributions.laplace import Laplace
from idios.core.distributions.staircase import Staircase

__all__ = [
    "Admissible",
    "DiscreteLaplace",
    "InverseSensitivity",
    "Laplace",
    "Staircase",
    "paper_pair",
    "tight_pair",
]
