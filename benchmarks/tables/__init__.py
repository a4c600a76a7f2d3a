"""Every table, in the order of the report."""

from . import (
    a2_structured,
    a_lookups,
    b_leaves,
    c_embedding,
    d_folds,
    e_slices,
    f_gather,
    g_calls,
    j_jacobian,
    k_likelihood,
    l_passes,
    o_operations,
    p_programs,
    s_chain,
    t_growth,
    v_constants,
    w_shared,
    x_capture,
)

MODULES = (
    s_chain,
    a_lookups,
    a2_structured,
    b_leaves,
    c_embedding,
    d_folds,
    e_slices,
    f_gather,
    l_passes,
    o_operations,
    p_programs,
    g_calls,
    j_jacobian,
    v_constants,
    k_likelihood,
    w_shared,
    t_growth,
    x_capture,
)

TABLES = tuple(table for module in MODULES for table in module.TABLES)
