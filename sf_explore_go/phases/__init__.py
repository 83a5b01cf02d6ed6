"""Explore, then go: the schedule, one open rollout per policy."""
