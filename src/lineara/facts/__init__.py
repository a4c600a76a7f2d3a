"""What everything else is written with: types, primitives, symbols and their registry."""
