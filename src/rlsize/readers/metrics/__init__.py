"""Metrics pages of running engines, one file per kind of engine: a page's text becomes one `EngineCounters` per instance."""
