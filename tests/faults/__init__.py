"""Each fault that docs/faults.md lists, injected into a real training."""
