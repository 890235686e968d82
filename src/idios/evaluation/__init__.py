"""The paper's evaluation, run again and made fair; and the same comparison on a controller's own data."""

from idios.evaluation.comparison import Comparison, Row, compare, compare_frame
from idios.evaluation.reproduction import FULL, QUICK, Effort, reproduce

__all__ = ["FULL", "QUICK", "Comparison", "Effort", "Row", "compare", "compare_frame", "reproduce"]
