"""Measurements: programs that are run by hand, and small tests that they work."""
