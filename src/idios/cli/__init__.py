"""The command line: thin commands over the library."""

from idios.cli.main import main

__all__ = ["main"]
