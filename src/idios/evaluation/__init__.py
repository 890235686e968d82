"""The paper's evaluation, run again and made fair; and the same comparison on a controller's own data.

A comparison runs with the library alone. What draws data sets or figures (``reproduction``, ``rendering``) needs scipy
and plotly, which come with the extra ``evaluation``; so do the probabilities of the admissible noise.
"""

from idios.evaluation.comparison import Comparison, ComparisonRow, compare, compare_frame

__all__ = ["Comparison", "ComparisonRow", "compare", "compare_frame"]
