# The iteration for a program.
rlsize iteration --instances 8 --group 8 --group-seconds 3 --samples 256 --train-seconds 5 --json
