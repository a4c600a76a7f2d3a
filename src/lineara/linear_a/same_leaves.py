"""Leaves that do the same share a key: what is computed twice is found, and stored once."""

from typing import Any

import numpy as np

from lineara.linear_a import syntax as ir


def key_of(e: ir.Leaf) -> Any:
    """A key that equal non-linear leaves share; None for leaves that have none."""
    try:
        match e:
            case ir.Prim(primitive=p, params=params):
                key = (p, e.args, frozen(params)) if params else (p, e.args)
            case ir.Lit(value=value, type=t) if np.asarray(value).dtype != object:
                return (ir.Lit, t, np.asarray(value).tobytes())
            case ir.Zero(type=t):
                return (ir.Zero, t)
            case ir.Tup(fields=fields):
                key = (ir.Tup, e.args, fields)
            case ir.Application():
                key = (type(e), e.head(), e.functions, e.args)
            case _:
                return None
        hash(key)
    except TypeError:
        return None
    return key


def frozen(params: object) -> Any:
    """Parameters as a key; variables are themselves."""
    if isinstance(params, dict):
        return tuple([(k, frozen(v)) for k, v in params.items() if k != "line"])
    if isinstance(params, tuple):
        return tuple([frozen(v) for v in params])
    if isinstance(params, np.ndarray) and params.dtype != object:
        return (np.ndarray, params.dtype.str, params.shape, params.tobytes())
    if isinstance(params, slice):
        return (slice, frozen(params.start), frozen(params.stop), frozen(params.step))
    return (type(params), params)
