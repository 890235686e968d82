"""Where data is read: the only home of data drivers."""
