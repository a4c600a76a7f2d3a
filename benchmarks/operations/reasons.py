"""Why a gradient costs more than four values: by expression, as a user would want it told."""

REASONS: dict[str, str] = {}
