"""Tests that make their own questions."""
