# An uncertain rate: every result has an 80 % band.
rlsize fleet --consume 39321.6 --per-instance '4000 ± 300' --batch-tokens 786432
