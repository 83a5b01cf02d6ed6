"""What keeps processes honest: supervisor, fork server, signals."""
