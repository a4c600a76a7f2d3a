"""Shapes, axes and indices that do not go together."""

import re

import numpy as np
import pytest

import lineara
from lineara import grad, jvp, vjp, vmap
from lineara.facts.primitive import op

A = np.ones((3, 4))
V = np.ones(3)


def test_matmul(said):
    def f(x):
        return np.sum(x @ np.ones(3))

    found = said(lambda: grad(f)(A))
    assert found == (
        "ShapeError: matmul: f64[3,4] @ f64[3] does not compose; the last dimension of "
        "the left must equal the first of the right"
        "\n  at f: return np.sum(x @ np.ones(3))"
    )


def test_matmul_from_the_left(said):
    def f(x):
        return np.sum(np.ones((2, 2)) @ x)

    found = said(lambda: grad(f)(A))
    assert found == (
        "ShapeError: matmul: f64[2,2] @ f64[3,4] does not compose; the last dimension "
        "of the left must equal the first of the right"
        "\n  at f: return np.sum(np.ones((2, 2)) @ x)"
    )


def test_matmul_of_stacks(said):
    def f(x):
        return np.sum(np.ones((2, 3, 3)) @ x)

    found = said(lambda: grad(f)(np.ones((5, 3, 3))))
    assert found == (
        "ShapeError: matmul: cannot broadcast the stacks of matrices f64[2,3,3] and "
        "f64[5,3,3]; leading dimensions must be equal or 1"
        "\n  at f: return np.sum(np.ones((2, 3, 3)) @ x)"
    )


def test_dot(said):
    def f(x):
        return np.sum(np.dot(x, np.ones(5)))

    found = said(lambda: grad(f)(V))
    assert found == (
        "ShapeError: matmul: f64[3] @ f64[5] does not compose; the last dimension of "
        "the left must equal the first of the right"
        "\n  at f: return np.sum(np.dot(x, np.ones(5)))"
    )


def test_tensordot(said):
    def f(x):
        return np.sum(np.tensordot(x, np.ones((3, 2)), 1))

    found = said(lambda: grad(f)(A))
    assert found == (
        "ShapeError: tensordot: axis 1 of f64[3,4] and axis 0 of f64[3,2] differ; "
        "summed axes must be equal"
        "\n  at f: return np.sum(np.tensordot(x, np.ones((3, 2)), 1))"
    )


def test_add_a_constant(said):
    def f(x):
        return np.sum(x + np.ones(4))

    found = said(lambda: grad(f)(V))
    assert found == (
        "ShapeError: add: cannot broadcast f64[3] with f64[4]; trailing dimensions "
        "must be equal or 1"
        "\n  at f: return np.sum(x + np.ones(4))"
    )


def test_add_to_a_constant(said):
    def f(x):
        return np.sum(np.ones(4) + x)

    found = said(lambda: grad(f)(V))
    assert found == (
        "ShapeError: add: cannot broadcast f64[4] with f64[3]; trailing dimensions "
        "must be equal or 1"
        "\n  at f: return np.sum(np.ones(4) + x)"
    )


def test_add_two_traced(said):
    def f(x):
        return np.sum(x + x[:2])

    found = said(lambda: grad(f)(V))
    assert found == (
        "ShapeError: add: cannot broadcast f64[3] with f64[2]; trailing dimensions "
        "must be equal or 1"
        "\n  at f: return np.sum(x + x[:2])"
    )


def test_multiply(said):
    def f(x):
        return np.sum(x * np.ones((3, 2)))

    found = said(lambda: grad(f)(A))
    assert found == (
        "ShapeError: multiply: cannot broadcast f64[3,4] with f64[3,2]; trailing "
        "dimensions must be equal or 1"
        "\n  at f: return np.sum(x * np.ones((3, 2)))"
    )


def test_power(said):
    def f(x):
        return np.sum(x ** np.ones(2))

    found = said(lambda: grad(f)(V))
    assert found == (
        "ShapeError: power: cannot broadcast f64[3] with f64[2]; trailing dimensions "
        "must be equal or 1"
        "\n  at f: return np.sum(x ** np.ones(2))"
    )


def test_maximum(said):
    def f(x):
        return np.sum(np.maximum(x, np.ones(4)))

    found = said(lambda: grad(f)(V))
    assert found == (
        "ShapeError: maximum: cannot broadcast f64[3] with f64[4]; trailing dimensions "
        "must be equal or 1"
        "\n  at f: return np.sum(np.maximum(x, np.ones(4)))"
    )


def test_where(said):
    def f(x):
        return np.sum(np.where(x > 0, x, np.ones(4)))

    found = said(lambda: grad(f)(V))
    assert found == (
        "ShapeError: where: cannot broadcast bool[3] with f64[3] with f64[4]; trailing "
        "dimensions must be equal or 1"
        "\n  at f: return np.sum(np.where(x > 0, x, np.ones(4)))"
    )


def test_clip(said):
    def f(x):
        return np.sum(np.clip(x, np.zeros(4), 1.0))

    found = said(lambda: grad(f)(V))
    assert found == (
        "ShapeError: clip_below: cannot broadcast f64[3] with f64[4]; trailing dimensions "
        "must be equal or 1"
        "\n  at f: return np.sum(np.clip(x, np.zeros(4), 1.0))"
    )


def test_concatenate(said):
    def f(x):
        return np.sum(np.concatenate([x, np.ones((2, 3))]))

    found = said(lambda: grad(f)(A))
    assert found == (
        "ShapeError: concatenate: cannot join f64[3,4] with f64[2,3] along axis 0; all "
        "other axes must agree"
        "\n  at f: return np.sum(np.concatenate([x, np.ones((2, 3))]))"
    )


def test_concatenate_of_other_lengths_beside_the_axis(said):
    found = said(lambda: op("concat").result(A, np.ones((3, 2)), axis=0))
    assert "ShapeError: concat: f64[3,4], f64[3,2] do not join along axis 0; their other" in found


def test_concatenate_along_no_axis(said):
    def f(x):
        return np.sum(np.concatenate([x, x], axis=3))

    found = said(lambda: grad(f)(A))
    assert found == (
        "ShapeError: concatenate: the axis 3 does not exist in an array of 2 "
        "dimensions; use one from -2 to 1"
        "\n  at f: return np.sum(np.concatenate([x, x], axis=3))"
    )


def test_stack(said):
    def f(x):
        return np.sum(np.stack([x, np.ones(2)]))

    found = said(lambda: grad(f)(V))
    assert found == (
        "ShapeError: stack: all arrays must have one shape; found f64[3], f64[2]"
        "\n  at f: return np.sum(np.stack([x, np.ones(2)]))"
    )


def test_nested_lists(said):
    def f(x):
        return np.sum(np.array([[x[0], x[1]], [x[2]]]))

    found = said(lambda: grad(f)(V))
    assert found == (
        "ShapeError: stack: f64[2] and f64[1] are refused: all input arrays must have "
        "the same shape"
        "\n  at f: return np.sum(np.array([[x[0], x[1]], [x[2]]]))"
    )


def test_reshape(said):
    def f(x):
        return np.sum(x.reshape(5))

    found = said(lambda: grad(f)(V))
    assert found == (
        "ShapeError: reshape: f64[3] has 3 elements, which do not fill (5,)"
        "\n  at f: return np.sum(x.reshape(5))"
    )


def test_reshape_with_a_free_length(said):
    def f(x):
        return np.sum(x.reshape(-1, 2))

    found = said(lambda: grad(f)(V))
    assert found == (
        "ShapeError: reshape: f64[3] has 3 elements, which do not fill (-1, 2)"
        "\n  at f: return np.sum(x.reshape(-1, 2))"
    )


def test_broadcast_to(said):
    def f(x):
        return np.sum(np.broadcast_to(x, (3, 2)))

    found = said(lambda: grad(f)(V))
    assert found == (
        "ShapeError: broadcast_to: f64[3] does not broadcast to (3, 2); trailing "
        "dimensions must be equal or 1"
        "\n  at f: return np.sum(np.broadcast_to(x, (3, 2)))"
    )


def test_transpose(said):
    def f(x):
        return np.sum(np.transpose(x, (0, 5)))

    found = said(lambda: grad(f)(A))
    assert found == (
        "ShapeError: transpose: the axis 5 does not exist in an array of 2 dimensions; "
        "use one from -2 to 1"
        "\n  at f: return np.sum(np.transpose(x, (0, 5)))"
    )


def test_transpose_twice_the_same(said):
    def f(x):
        return np.sum(np.transpose(x, (0, 0)))

    found = said(lambda: grad(f)(A))
    assert found == (
        "ShapeError: transpose: the axes (0, 0) name one axis twice; give each once"
        "\n  at f: return np.sum(np.transpose(x, (0, 0)))"
    )


def test_swapaxes(said):
    def f(x):
        return np.sum(np.swapaxes(x, 0, 5))

    found = said(lambda: grad(f)(A))
    assert found == (
        "ShapeError: swapaxes: the axis 5 does not exist in an array of 2 dimensions; "
        "use one from -2 to 1"
        "\n  at f: return np.sum(np.swapaxes(x, 0, 5))"
    )


def test_squeeze(said):
    def f(x):
        return np.sum(np.squeeze(x, 0))

    found = said(lambda: grad(f)(A))
    assert found == (
        "ShapeError: squeeze: axis 0 of f64[3,4] is not of length 1"
        "\n  at f: return np.sum(np.squeeze(x, 0))"
    )


def test_split(said):
    def f(x):
        return np.sum(np.split(x, 2)[0])

    found = said(lambda: grad(f)(V))
    assert found == (
        "ShapeError: split: 3 rows do not make 2 equal parts; np.array_split gives "
        "unequal ones"
        "\n  at f: return np.sum(np.split(x, 2)[0])"
    )


def test_sum_over_no_axis(said):
    def f(x):
        return np.sum(np.sum(x, axis=2))

    found = said(lambda: grad(f)(A))
    assert found == (
        "ShapeError: sum: the axis 2 does not exist in an array of 2 dimensions; use "
        "one from -2 to 1"
        "\n  at f: return np.sum(np.sum(x, axis=2))"
    )


def test_max_over_no_axis(said):
    def f(x):
        return np.sum(np.max(x, axis=2))

    found = said(lambda: grad(f)(A))
    assert found == (
        "ShapeError: max: the axis 2 does not exist in an array of 2 dimensions; use "
        "one from -2 to 1"
        "\n  at f: return np.sum(np.max(x, axis=2))"
    )


def test_max_of_nothing(said):
    def f(x):
        return np.sum(np.max(x[:0]))

    found = said(lambda: grad(f)(V))
    assert found == (
        "ShapeError: max: f64[0] has no elements; give it at least one, or initial="
        "\n  at f: return np.sum(np.max(x[:0]))"
    )


def test_cumsum_along_no_axis(said):
    def f(x):
        return np.sum(np.cumsum(x, axis=2))

    found = said(lambda: grad(f)(A))
    assert found == (
        "ShapeError: cumsum: the axis 2 does not exist in an array of 2 dimensions; "
        "use one from -2 to 1"
        "\n  at f: return np.sum(np.cumsum(x, axis=2))"
    )


def test_sort_along_no_axis(said):
    def f(x):
        return np.sum(np.sort(x, axis=2))

    found = said(lambda: grad(f)(A))
    assert found == (
        "ShapeError: sort: the axis 2 does not exist in an array of 2 dimensions; use "
        "one from -2 to 1"
        "\n  at f: return np.sum(np.sort(x, axis=2))"
    )


def test_trace_of_a_vector(said):
    def f(x):
        return np.sum(np.trace(x))

    found = said(lambda: grad(f)(V))
    assert found == (
        "ShapeError: numpy.trace: f64[3] is refused: diag requires an array of at "
        "least two dimensions"
        "\n  at f: return np.sum(np.trace(x))"
    )


def test_diag_of_a_stack(said):
    def f(x):
        return np.sum(np.diag(x))

    found = said(lambda: grad(f)(np.ones((2, 2, 2))))
    assert found == (
        "ShapeError: diag: takes a vector or a matrix, not f64[2,2,2]"
        "\n  at f: return np.sum(np.diag(x))"
    )


def test_cross(said):
    def f(x):
        return np.sum(np.cross(x, np.ones(4)))

    found = said(lambda: grad(f)(np.ones(4)))
    assert found == (
        "ShapeError: cross: takes vectors of length 3 or 2, not f64[4] and f64[4]"
        "\n  at f: return np.sum(np.cross(x, np.ones(4)))"
    )


def test_einsum(said):
    def f(x):
        return np.sum(np.einsum("ij,jk->", x, np.ones((3, 3))))

    found = said(lambda: grad(f)(A))
    assert found == (
        "ShapeError: einsum: 'ij,jk->' gives the letter j the lengths 4 and 3; a "
        "letter has one length"
        '\n  at f: return np.sum(np.einsum("ij,jk->", x, np.ones((3, 3))))'
    )


def test_einsum_letters(said):
    def f(x):
        return np.sum(np.einsum("ijk->", x))

    found = said(lambda: grad(f)(A))
    assert found == (
        "ShapeError: einsum: 'ijk->' gives 3 letters to f64[3,4]"
        '\n  at f: return np.sum(np.einsum("ijk->", x))'
    )


def test_einsum_operands(said):
    def f(x):
        return np.sum(np.einsum("ij,jk->", x))

    found = said(lambda: grad(f)(A))
    assert found == (
        "ShapeError: einsum: 'ij,jk->' names 2 operands, but 1 are given"
        '\n  at f: return np.sum(np.einsum("ij,jk->", x))'
    )


def test_einsum_result(said):
    def f(x):
        return np.sum(np.einsum("ij->ik", x))

    found = said(lambda: grad(f)(A))
    assert found == (
        "ShapeError: einsum: 'ij->ik' has the letter k in its result but in no operand"
        '\n  at f: return np.sum(np.einsum("ij->ik", x))'
    )


def test_solve(said):
    def f(x):
        return np.sum(np.linalg.solve(x, np.ones(3)))

    found = said(lambda: grad(f)(A))
    assert found == (
        "ShapeError: solve: takes square matrices, not f64[3,4]"
        "\n  at f: return np.sum(np.linalg.solve(x, np.ones(3)))"
    )


def test_solve_right_side(said):
    def f(x):
        return np.sum(np.linalg.solve(np.eye(3), x))

    found = said(lambda: grad(f)(np.ones(4)))
    assert found == (
        "ShapeError: solve: f64[3,3] and f64[4] do not fit; b must have as many rows "
        "as the matrix"
        "\n  at f: return np.sum(np.linalg.solve(np.eye(3), x))"
    )


def test_inv(said):
    def f(x):
        return np.sum(np.linalg.inv(x))

    found = said(lambda: grad(f)(A))
    assert found == (
        "ShapeError: inv: takes square matrices, not f64[3,4]"
        "\n  at f: return np.sum(np.linalg.inv(x))"
    )


def test_norm(said):
    def f(x):
        return np.sum(np.linalg.norm(x, axis=4))

    found = said(lambda: grad(f)(A))
    assert found == (
        "ShapeError: norm: the axis 4 does not exist in an array of 2 dimensions; use "
        "one from -2 to 1"
        "\n  at f: return np.sum(np.linalg.norm(x, axis=4))"
    )


def test_index(said):
    def f(x):
        return np.sum(x[5])

    found = said(lambda: grad(f)(V))
    assert found == (
        "BoundsError: index: 5 does not index f64[3]: index 5 is out of bounds for axis "
        "0 with size 3"
        "\n  at f: return np.sum(x[5])"
    )


def test_index_of_a_second_read(said):
    def f(x):
        return np.sum(x[0] + x[-5])

    found = said(lambda: grad(f)(V))
    assert found == (
        "BoundsError: index: -5 does not index f64[3]: index -5 is out of bounds for "
        "axis 0 with size 3"
        "\n  at f: return np.sum(x[0] + x[-5])"
    )


def test_index_of_a_matrix(said):
    def f(x):
        return np.sum(x[1, 7])

    found = said(lambda: grad(f)(A))
    assert found == (
        "BoundsError: index: 1, 7 does not index f64[3,4]: index 7 is out of bounds for "
        "axis 1 with size 4"
        "\n  at f: return np.sum(x[1, 7])"
    )


def test_too_many_indices(said):
    def f(x):
        return np.sum(x[1, 2])

    found = said(lambda: grad(f)(V))
    assert found == (
        "BoundsError: index: 1, 2 does not index f64[3]: too many indices for array: "
        "array is 1-dimensional, but 2 were indexed"
        "\n  at f: return np.sum(x[1, 2])"
    )


def test_index_array(said):
    def f(x):
        return np.sum(x[[1, 7]])

    found = said(lambda: grad(f)(V))
    assert found == (
        "BoundsError: index: array([1, 7]) does not index f64[3]: index 7 is out of "
        "bounds for axis 0 with size 3"
        "\n  at f: return np.sum(x[[1, 7]])"
    )


def test_index_mask(said):
    def f(x):
        return np.sum(x[np.array([True, False])])

    found = said(lambda: grad(f)(V))
    assert found == (
        "BoundsError: index: array([ True, False]) does not index f64[3]: boolean index "
        "did not match indexed array along axis 0; size of axis is 3 but size of "
        "corresponding boolean axis is 2"
        "\n  at f: return np.sum(x[np.array([True, False])])"
    )


def test_index_with_a_float(said):
    def f(x):
        return np.sum(x[1.0])

    found = said(lambda: grad(f)(V))
    assert found == (
        "TypeMismatchError: index: 1.0 does not index f64[3]; an index is made of "
        "integers, slices, None, ..., and integer or boolean arrays"
        "\n  at f: return np.sum(x[1.0])"
    )


def test_index_with_a_string(said):
    def f(x):
        return np.sum(x["a"])

    found = said(lambda: grad(f)(V))
    assert found == (
        "TypeMismatchError: index: 'a' does not index f64[3]; an index is made of "
        "integers, slices, None, ..., and integer or boolean arrays"
        '\n  at f: return np.sum(x["a"])'
    )


def test_index_with_a_traced_value(said):
    def f(x):
        return np.sum(x[x[0]])

    found = said(lambda: grad(f)(V))
    assert found == (
        "TypeMismatchError: index: traced(1.0) does not index f64[3]; an index is made "
        "of integers, slices, None, ..., and integer or boolean arrays"
        "\n  at f: return np.sum(x[x[0]])"
    )


def test_take(said):
    def f(x):
        return np.sum(np.take(x, [9]))

    found = said(lambda: grad(f)(V))
    assert found == (
        "BoundsError: index: array([9]) does not index f64[3]: index 9 is out of bounds "
        "for axis 0 with size 3"
        "\n  at f: return np.sum(np.take(x, [9]))"
    )


def test_write_of_a_wrong_shape(said):
    def f(x):
        y = x.copy()
        y[:2] = x
        return np.sum(y)

    found = said(lambda: grad(f)(V))
    assert found == (
        "ShapeError: write: f64[3] does not fit at [:2] of an array of shape (3,): "
        "could not broadcast input array from shape (3,) into shape (2,)"
        "\n  at f: y[:2] = x"
    )


def test_write_of_a_constant_of_a_wrong_shape(said):
    def f(x):
        y = x.copy()
        y[:2] = np.ones(3)
        return np.sum(y)

    found = said(lambda: grad(f)(V))
    assert found == (
        "ShapeError: write: f64[3] does not fit at [:2] of an array of shape (3,): "
        "could not broadcast input array from shape (3,) into shape (2,)"
        "\n  at f: y[:2] = np.ones(3)"
    )


def test_write_out_of_bounds(said):
    def f(x):
        y = x.copy()
        y[7] = x[0]
        return np.sum(y)

    found = said(lambda: grad(f)(V))
    assert found == (
        "BoundsError: write: f64[] does not fit at [7] of an array of shape (3,): index "
        "7 is out of bounds for axis 0 with size 3"
        "\n  at f: y[7] = x[0]"
    )


def test_write_through_a_mask(said):
    def f(x):
        y = x.copy()
        y[y > 0] = np.ones(2)
        return np.sum(y)

    found = said(lambda: grad(f)(V))
    assert found == (
        "ShapeError: write: f64[2] does not fit at [array([ True,  True,  True])] of "
        "an array of shape (3,): NumPy boolean array indexing assignment cannot assign "
        "2 input values to the 3 output values where the mask is true"
        "\n  at f: y[y > 0] = np.ones(2)"
    )


def test_in_place_operation_that_would_grow(said):
    def f(x):
        y = x.copy()
        y += np.ones((2, 3))
        return np.sum(y)

    found = said(lambda: grad(f)(V))
    assert found == (
        "ShapeError: in-place operation: f64[2,3] does not fit into f64[3]; "
        "broadcasting cannot make the target larger"
        "\n  at f: y += np.ones((2, 3))"
    )


def test_tangent_of_a_wrong_shape(said):
    def f(x):
        return 2 * x

    found = said(lambda: jvp(f, (V,), (np.ones(4),)))
    assert found == (
        "ShapeError: applying a linear map: the vector has a leaf f64[4], but the map "
        "takes f64[3]"
        "\n  at <lambda>: found = said(lambda: jvp(f, (V,), (np.ones(4),)))"
    )


def test_cotangent_of_a_wrong_shape(said):
    def f(x):
        return 2 * x

    found = said(lambda: vjp(f, V)[1](np.ones(4)))
    assert found == (
        "ShapeError: applying a linear map: the vector has a leaf f64[4], but the map "
        "takes f64[3]"
        "\n  at <lambda>: found = said(lambda: vjp(f, V)[1](np.ones(4)))"
    )


def third(x, i):
    return x[0] * x[i] * x[1]


WAYS_TO_RUN = {
    "value": lambda: lineara.jit(third),
    "gradient": lambda: lineara.jit(lineara.grad(third)),
    "Hessian": lambda: lineara.jit(lineara.hessian(third)),
    "gradient of gradient": lambda: lineara.jit(
        lineara.grad(lambda x, i: lineara.grad(third)(x, i).sum())
    ),
    "lanes": lambda: lineara.jit(lineara.vmap(third, in_axes=(0, None))),
    "gradients in lanes": lambda: lineara.jit(lineara.vmap(lineara.grad(third), in_axes=(0, None))),
}


@pytest.mark.parametrize("way", WAYS_TO_RUN)
@pytest.mark.parametrize("engine", ["native", "interpreter"])
def test_a_position_beyond_the_end_as_a_program_runs(said, way, engine):
    x = np.ones((2, 3)) if "lanes" in way else np.ones(3)
    with lineara.engine(engine):
        f = WAYS_TO_RUN[way]()
        f(x, 2)
        found = said(lambda: f(x, 7))
    shape, axis = ("f64[2,3]", 1) if "lanes" in way else ("f64[3]", 0)
    assert re.sub(r"py:\d+", "py:N", found) == (
        f"BoundsError: {shape} was read at a place that it does not have: index 7 is out of "
        f"bounds for axis {axis} with size 3; count from 0 to 2, or backwards from -1 to -3"
        "\n  at test_shapes.py:N: return x[0] * x[i] * x[1]"
    )


def put(x, i):
    y = np.zeros(3)
    y[i] = x[0]
    return y


def added(x, i):
    y = np.zeros(3)
    y[i] += x[0]
    return y


@pytest.mark.parametrize("f", [put, added])
@pytest.mark.parametrize("engine", ["native", "native exact", "adaptive", "interpreter"])
def test_a_write_beyond_the_end_is_an_index_error_as_of_numpy(f, engine):
    g = lineara.jit(f, engine=engine)
    for i in (3, -4, 2**40):
        told = []
        for h in (f, g):
            try:
                h(np.ones(3), i)
            except IndexError as e:
                told.append(str(e))
        plain, ours = told
        assert plain == f"index {i} is out of bounds for axis 0 with size 3"
        assert re.sub(r"py:\d+", "py:N", ours) == (
            f"f64[3] was {'written' if f is put else 'read'} at a place that it does not have: "
            f"{plain}; count from 0 to 2, or backwards from -1 to -3"
            f"\n  at test_shapes.py:N: y[i] {'' if f is put else '+'}= x[0]"
        )


def read_first(x, i):
    return np.linalg.inv(x)[i] * x[0]


def read_second(x, i):
    return np.linalg.inv(x)[i] * x[0]


@pytest.mark.parametrize("way", ["lanes", "gradients", "coefficients"])
@pytest.mark.parametrize("engine", ["native", "interpreter"])
def test_functions_of_one_text_name_their_own_lines(way, engine):
    def run(f, x, i):
        if way == "lanes":
            return lineara.jit(vmap(f, (0, None)), engine=engine)(np.stack([x, x]), i)
        if way == "gradients":
            with lineara.engine(engine):
                return grad(lambda x: f(x, i).sum(), policy="recompute_all")(x)

        def along(x, i):
            return lineara.taylor(lambda y: f(y, i), x, [np.ones_like(x)], 2)

        return lineara.jit(along, engine=engine)(x, i)

    for f in (read_first, read_second):
        own = f"test_shapes.py:{f.__code__.co_firstlineno + 1}"
        with pytest.raises(IndexError) as e:
            run(f, np.eye(2), 7)
        assert own in str(e.value)
        with pytest.raises(np.linalg.LinAlgError) as e:
            run(f, np.zeros((2, 2)), 1)
        assert own in e.value.__notes__[0]
