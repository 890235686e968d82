"""The trusted party over HTTP: an API for analysts and controllers, and a console for both."""
