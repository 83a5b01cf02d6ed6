"""Playing a trained agent: player, arena, coverage."""
