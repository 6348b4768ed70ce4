# The same for a program.
rlsize fleet --consume 39321 --per-instance 4000 --json
