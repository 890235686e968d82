"""From summaries to an answer: what is drawn, what is shown of it, and what is said of how far off it is.

No module here knows an engine. ``release`` draws, ``intervals`` says how far off, ``projection`` shows rows, ``notes``
has the sentences, ``assembly`` puts an answer together.
"""
