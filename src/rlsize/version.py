"""The version of rlsize: the only place that says it."""

VERSION = "0.1.0"
