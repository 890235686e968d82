"""Reports: several questions planned as one, priced before anything is spent."""
