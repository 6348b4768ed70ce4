"""Metrics pages of running engines, one file per kind of engine; a page becomes one `EngineCounters` per engine."""
