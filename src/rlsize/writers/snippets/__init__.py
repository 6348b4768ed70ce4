"""A split as a framework's own configuration keys: one file per framework, found by listing this folder."""
