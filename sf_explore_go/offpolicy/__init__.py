"""Explore-Go with a replay buffer: DQN with an exploration value, TEE and the paper's ablation."""
