"""Six problems that differentiation tools are compared on, as a user of Lineara writes them."""
