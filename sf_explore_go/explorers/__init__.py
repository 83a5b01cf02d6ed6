"""Who acts before the agent: the interface, random, sticky, counts, E3B."""
