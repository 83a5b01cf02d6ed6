"""Who acts before the agent: the interface, random, E3B."""
