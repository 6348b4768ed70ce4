# Groups of 8 in 3 s on 8 instances: 256 samples take 12 s.
rlsize iteration --instances 8 --group 8 --group-seconds 3 --samples 256 --train-seconds 5
