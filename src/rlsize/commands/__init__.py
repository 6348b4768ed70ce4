"""THE SHELL: one file per command; composes the edges."""
