"""Records of published measurements, one file per class; each turns a row of a YAML list into facts."""
