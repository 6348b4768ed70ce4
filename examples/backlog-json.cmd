# Growth and age for a program.
rlsize backlog --instances 15 --per-instance 4000 --consume 39321.6 --batch-tokens 786432 --seconds 600 --json
