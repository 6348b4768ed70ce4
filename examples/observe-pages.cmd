# The rate of an engine from two saved pages.
rlsize observe --pages examples/metrics/first.prom examples/metrics/second.prom --seconds 60
