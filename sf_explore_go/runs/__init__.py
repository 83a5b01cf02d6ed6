"""A run on disk: folder, lock, checkpoints, status, scores."""
