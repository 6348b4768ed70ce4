# Ten instances: nothing waits at nameplate, and 18.6 % are expected with headroom.
rlsize fleet --consume 39321.6 --per-instance 4000 --instances 10 --batch-tokens 786432 --csv
