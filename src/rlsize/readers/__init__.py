"""EDGE IN: files and pages become facts. One file per format."""
