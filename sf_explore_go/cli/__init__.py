"""One thin module per verb; no other room imports them."""
