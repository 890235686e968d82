"""``python -m idios`` is the command line."""

from idios.cli import main

main()
