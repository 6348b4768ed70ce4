"""Launches written back: the same file, with other values of some keys."""
