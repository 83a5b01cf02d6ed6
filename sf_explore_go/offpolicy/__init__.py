"""Learning from a replay buffer: DQN with Q and U, TEE."""
