"""What goes from one engine to another; the engines themselves do not know each other."""
