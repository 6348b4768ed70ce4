# Twelve instances: 2.3 % are expected to wait.
rlsize fleet --consume 39321.6 --per-instance 4000 --instances 12 --batch-tokens 786432 --markdown
