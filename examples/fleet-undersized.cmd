# Eight instances run where thirteen match: the trainer waits.
rlsize fleet --consume 39321.6 --per-instance 4000 --instances 8 --batch-tokens 786432
