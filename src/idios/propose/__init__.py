"""What `idios init` and `idios.schema` propose to declare of a file, a frame or a table, and what they never do."""
