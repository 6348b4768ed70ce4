"""Published measurements: what somebody measured, and on what; one file per class of record."""
