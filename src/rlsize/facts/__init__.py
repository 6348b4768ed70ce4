"""WHAT IS TRUE: frozen dataclasses, no arithmetic. Files are checked against them in `readers`."""
