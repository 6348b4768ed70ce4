# Thirteen instances, explained.
rlsize fleet --consume 39321.6 --per-instance 4000 --instances 13 --batch-tokens 786432 --explain
