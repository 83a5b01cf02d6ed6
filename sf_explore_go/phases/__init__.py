"""Explore, then go: schedule, rollouts, Gymnasium wrapper."""
