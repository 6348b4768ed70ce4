# The bill for a program.
rlsize memory --params 70e9 --algorithm ppo --reward-model --json
