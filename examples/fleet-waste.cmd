# Over-sampling and filtered groups: 1.5 tokens are generated for each one that is trained.
rlsize fleet --consume 39321 --per-instance 4000 --tokens-per-trained-token 1.5
