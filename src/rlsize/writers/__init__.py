"""EDGE OUT: a `Report` becomes a table, JSON, CSV, Markdown or a picture; answers become files."""
