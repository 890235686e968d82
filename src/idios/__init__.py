"""Idios: the trusted party of individual differential privacy."""
