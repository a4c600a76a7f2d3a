"""Python to programs: tracing, control flow, lanes, and rules inside of programs."""
