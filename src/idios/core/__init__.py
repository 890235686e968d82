"""The mathematics: integers and fractions on a public grid, no I/O, proved by enumeration."""
