"""What every operation costs: its value, its derivatives forward and in reverse, beside peers."""
