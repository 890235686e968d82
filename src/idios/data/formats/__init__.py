"""Files as sources: which kind each is, how it is read, and what its text seems to be."""
