"""
WHAT FOLLOWS: one pure function per equation, in one file per topic.

Floats in, a float out; numpy arrays in, the same shape out. No objects, no rounding, no input checks: the edges refuse
what has no meaning (zero rates, negative sizes) before an equation sees it.
"""
