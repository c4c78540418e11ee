"""A classifier behind HTTP: a page where people see why, and a small stable API."""
