"""Predictions of recorded measurements, one file per class of record."""
