"""Python to programs: tracing, capture from the source, control flow, lanes, rules in programs."""
