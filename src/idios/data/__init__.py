"""From a plan to the summaries of its cells: the only package that reads data, and it adds no noise.

``backend`` opens a source, ``summarise`` is what a plan goes through. ``sql`` writes statements, ``engines`` import the
drivers, ``formats`` read files.
"""
