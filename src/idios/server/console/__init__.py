"""The console: server-rendered pages for analysts and controllers, with a little script of their own.

Rules:

1. Nothing is loaded from elsewhere, and nothing is written into a page but text: no inline script, no inline style.
2. Every change is a form with the session's CSRF token. Reloading a page never asks a question twice.
3. Everything works without script, except completion, the live quote and copying.
"""

from idios.server.console.pages import error_page
from idios.server.console.routing import router

__all__ = ["error_page", "router"]
