"""Where agents act: the World interface, Doom, the grid."""
