# PPO adds a critic: 2,660 GB.
rlsize memory --params 70e9 --algorithm ppo --reward-model
