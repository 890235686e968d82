"""The SQL that engines are given: records on the grid, conditions, people, joins, and what differs between engines."""
