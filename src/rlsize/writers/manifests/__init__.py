"""A resize as a manifest: one file per platform, found by listing this folder; nothing is applied."""
