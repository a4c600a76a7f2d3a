"""Running programs: the interpreter, and the rehearsal that measures without values."""
