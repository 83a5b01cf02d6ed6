"""Who acts before the agent: random, sticky, counts, E3B."""
