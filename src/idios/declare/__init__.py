"""What a controller declares of a data set: columns, dates and their written forms, protection, what may be asked.

Public facts alone. It imports the core, and nothing above it.
"""
