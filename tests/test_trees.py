"""Flattening and mapping of nested containers."""

import collections
import subprocess
import sys
import types
from collections import OrderedDict, defaultdict, deque
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import Any, NamedTuple

import attrs
import numpy as np
import optree
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lineara.containers.boundary import lift
from lineara.errors import StructureError
from lineara.trees import flatten, is_container, leaf_paths, map_leaves, unflatten


class Point(NamedTuple):
    x: Any
    y: Any = 0.0


@dataclass(frozen=True, slots=True)
class Slotted:
    w: Any
    b: Any = 0.0


@dataclass
class Checked:
    w: Any

    def __post_init__(self):
        assert isinstance(self.w, float)


@attrs.frozen
class Attrs:
    w: Any
    b: Any = 0.0


class Plain:
    def __init__(self, w):
        self.w = w

    def __eq__(self, other):
        return type(other) is Plain and vars(self) == vars(other)

    __hash__ = None  # pyright: ignore

    def __repr__(self):
        return f"Plain({self.w})"


class Matrix:
    """A class whose author registered it with optree, rows only."""

    def __init__(self, rows, cache=None):
        self.rows, self.cache = rows, cache


optree.register_pytree_node(
    Matrix,
    lambda m: (tuple(m.rows), "aux", tuple(f"row{i}" for i in range(len(m.rows)))),
    lambda _, rows: Matrix(list(rows)),
    namespace="lineara",
)


class Color(Enum):
    RED = 1


LEAVES = st.one_of(st.floats(-9, 9), st.none(), st.text("ab", max_size=2), st.just(Color.RED))
TREES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.lists(inner, max_size=3).map(lambda x: deque(x, 5)),
        st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
        st.dictionaries(st.sampled_from("abc"), inner, max_size=3).map(OrderedDict),
        st.dictionaries(st.sampled_from("abc"), inner, max_size=3).map(
            lambda d: defaultdict(int, d)
        ),
        st.builds(Point, inner, inner),
        st.builds(Slotted, inner, inner),
        st.builds(Attrs, inner, inner),
        st.builds(Plain, inner),
        st.builds(lambda x: types.SimpleNamespace(x=x), inner),
    ),
    max_leaves=12,
)


@given(TREES)
def test_unflatten_inverts_flatten(tree):
    leaves, structure = flatten(tree)
    back = unflatten(structure, leaves)
    assert back == tree
    assert type(back) is type(tree)
    assert flatten(back) == (leaves, structure)


@given(TREES)
def test_flattening_a_proxy_gives_what_was_lifted(tree):
    assume("deque(" not in repr(tree))
    seen = []
    leaves, structure = flatten(lift(tree, lambda x: seen.append(x) or "leaf"))
    assert sorted(map(repr, seen)) == sorted(map(repr, flatten(tree)[0]))
    assert set(leaves) <= {"leaf"}
    assert structure == flatten(tree)[1]


@given(TREES)
def test_mapping_the_identity_is_the_identity(tree):
    assert map_leaves(lambda x: x, tree) == tree


@given(TREES)
def test_mapping_keeps_the_structure(tree):
    marked = map_leaves(lambda x: "leaf", tree)
    assert flatten(marked)[1] == flatten(tree)[1]
    assert [x is None for x in flatten(marked)[0]] == [x is None for x in flatten(tree)[0]]


@given(TREES)
def test_there_is_a_path_for_each_leaf_and_it_leads_there(tree):
    leaves, paths = flatten(tree)[0], leaf_paths(tree, root="tree")
    assert len(paths) == len(leaves)
    for leaf, path in zip(leaves, paths, strict=True):
        assert eval(path, {"tree": tree}) is leaf


def test_paths_are_written_as_in_python():
    params = {"layers": [1.0, Slotted(2.0, Point(3.0))], 7: types.SimpleNamespace(x=4.0)}
    assert leaf_paths(params, root="params") == [
        "params['layers'][0]",
        "params['layers'][1].w",
        "params['layers'][1].b.x",
        "params['layers'][1].b.y",
        "params[7].x",
    ]


def test_is_leaf_stops_the_walk():
    leaves, structure = flatten([(1.0, 2.0), [3.0]], is_leaf=lambda x: type(x) is tuple)
    assert leaves == [(1.0, 2.0), 3.0]
    assert unflatten(structure, ["a", "b"]) == ["a", ["b"]]


def test_init_and_post_init_do_not_run():
    assert map_leaves(str, Checked(1.0)).w == "1.0"


def test_registered_classes_are_taken_apart_as_registered():
    tree = {"m": Matrix([1.0, [2.0]], cache=3.0)}
    assert flatten(tree)[0] == [1.0, 2.0]
    assert leaf_paths(tree) == ["['m']['row0']", "['m']['row1'][0]"]
    assert map_leaves(lambda x: -x, tree)["m"].rows == [-1.0, [-2.0]]
    assert flatten(tree)[1] == flatten({"m": Matrix([3.0, [4.0]])})[1]


def test_optree_is_not_imported_by_us():
    code = (
        "import sys, lineara.trees as t; t.flatten([1.0, {}]); assert 'optree' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    "leaf",
    [
        1,
        1.0,
        None,
        "s",
        b"b",
        np.ones(2),
        np.float64(1),
        np.ma.ones(2),
        Fraction(1),
        Color.RED,
        {1},
    ],
)
def test_numbers_arrays_and_labels_are_leaves(leaf):
    assert not is_container(leaf)
    assert flatten(leaf)[0] == [leaf] or flatten(leaf)[0][0] is leaf


@pytest.mark.parametrize("leaf", [Plain, abs, types, ValueError(), sys.version_info, range(3)])
def test_classes_modules_functions_and_c_objects_are_leaves(leaf):
    assert not is_container(leaf)


@pytest.mark.parametrize(
    ("first", "other", "message"),
    [
        (
            {"layers": [0, 0, Slotted([1.0])]},
            {"layers": [0, 0, Slotted((1.0,))]},
            "map_leaves: params['layers'][2].w is a list in the first tree and a tuple in another; "
            "all trees must have the containers of the first",
        ),
        (
            {"a": [1.0, 2.0]},
            {"a": [1.0]},
            "map_leaves: params['a'] has [1] only in the first tree; "
            "all trees must have the keys of the first",
        ),
        (
            Plain({"a": 1.0}),
            Plain({"b": 1.0}),
            "map_leaves: params.w has ['a'] only in the first tree and ['b'] only in another; "
            "all trees must have the keys of the first",
        ),
        (
            [1.0],
            2.0,
            "map_leaves: params is a list in the first tree and a float in another; "
            "all trees must have the containers of the first",
        ),
    ],
)
def test_a_mismatch_is_named(first, other, message):
    with pytest.raises(StructureError, match="all trees must have the") as error:
        map_leaves(lambda x, y: x, first, other, root="params")
    assert error.value.message == message


def test_too_few_leaves_are_counted():
    with pytest.raises(StructureError, match="give one for each") as error:
        unflatten(flatten([1, [2]])[1], [1])
    assert error.value.message == (
        "unflatten: Structure([*, [*]]) has places for 2 leaves, but 1 came; give one for each"
    )


def test_structures_print_themselves():
    tree = {"p": Point(1.0), "s": Slotted((2.0,)), "l": [None], "d": deque([1])}
    assert repr(flatten(tree)[1]) == (
        "Structure({'p': Point(x=*, y=*), 's': Slotted(w=(*,), b=*), 'l': [*], 'd': deque([0]=*)})"
    )


def test_structures_compare():
    assert flatten({"a": 1, "b": 2})[1] == flatten({"a": 3, "b": 4})[1]
    assert flatten({"a": 1})[1] != flatten({"b": 1})[1]
    assert flatten([1])[1] != flatten((1,))[1]
    assert flatten(Point(1))[1] != flatten((1, 2))[1]
    assert flatten(deque([1], 2))[1] != flatten(deque([1], 3))[1]
    assert hash(flatten([1])[1]) == hash(flatten([2])[1])
    assert flatten([1])[1] != 1


def test_instance_attributes_of_a_dict_are_part_of_the_tree():
    class Labelled(dict):
        pass

    tree = Labelled(a=1.0)
    tree.label = [2.0]
    assert leaf_paths(tree) == ["['a']", ".label[0]"]
    back = map_leaves(lambda x: -x, tree)
    assert (back, back.label) == ({"a": -1.0}, [-2.0])


@pytest.mark.slow("trees of depth 10,000")
def test_trees_of_depth_10000():
    tree: Any = 0.0
    for i in range(10_000):
        tree = [(tree,), Slotted(1.0), {"a": tree}][i % 3] if i % 3 != 1 else Slotted(tree)
    leaves, structure = flatten(tree)
    assert structure == flatten(map_leaves(lambda x: x + 1, tree))[1]
    assert flatten(unflatten(structure, leaves))[0] == leaves
    assert len(leaf_paths(tree)) == len(leaves)
    assert repr(structure).startswith("Structure(")


def test_cycles_are_named():
    tree: list[Any] = [1.0, {}]
    tree[1]["me"] = tree
    for walk in [flatten, leaf_paths, lambda t: map_leaves(abs, t)]:
        with pytest.raises(StructureError, match=r"at tree\[1\]\['me'\] contains itself"):
            walk(tree)


def test_shared_containers_are_not_cycles():
    shared = [1.0]
    assert flatten([shared, shared])[0] == [1.0, 1.0]


def test_counters_and_their_like_stay_what_they_are():
    tree = collections.Counter(a=1)
    assert type(map_leaves(lambda x: x + 1, tree)) is collections.Counter
    assert map_leaves(lambda x: x + 1, tree) == {"a": 2}


def test_a_structure_is_a_tree_as_any_other():
    """A function that captured one is looked through for traced values."""
    structure = flatten({"a": [1.0, (2.0,)]})[1]
    tree = {"structure": structure, "x": 1.0, "entries": structure.entries}
    leaves, shape = flatten(tree)
    assert 1.0 in leaves
    assert flatten(unflatten(shape, leaves))[1] == shape
    assert len(leaf_paths(tree)) == len(leaves)
