# A link with the source of every number.
rlsize profiles show nvlink4
