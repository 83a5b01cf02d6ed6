"""Sample Factory's classes, extended: runner, actors, learners."""
