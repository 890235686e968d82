"""What mechanisms draw from, one distribution a file."""

from idios.core.distributions.above_threshold import AboveThreshold
from idios.core.distributions.discrete_gaussian import DiscreteGaussian
from idios.core.distributions.discrete_laplace import DiscreteLaplace
from idios.core.distributions.inverse_sensitivity import InverseSensitivity

__all__ = ["AboveThreshold", "DiscreteGaussian", "DiscreteLaplace", "InverseSensitivity"]
