"""
Logs of training runs: bytes become rows in `forms/`, rows become steps in `frameworks/`; one file for each.

A form does not know what a key means, a framework does not know how its keys were written, so that every framework can
be read from JSON lines or TensorBoard as well as from its own console.
"""
