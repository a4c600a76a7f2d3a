"""Rewritten code, with forms that do what Python does, gives what the function itself gives."""

import bisect
import builtins
import collections
import copy
import difflib
import fractions
import functools
import heapq
import importlib.util
import itertools
import operator
import statistics
import string
import sys
import textwrap
import types
from contextlib import contextmanager, nullcontext, suppress
from typing import Any
from unittest import mock

import numpy as np
import pytest
from random_source import module

from lineara.python.namespaces import FORMS
from lineara.python.structured_code import structured
from lineara.staging.capture import forms

# --- forms that do what Python does ---------------------------------------------------------------


class Return:
    """The function returns a value."""

    def __init__(self, value=None):
        self.value = value


class Plain:
    """The forms, as the statements are in Python; what was called is counted."""

    Return = Return
    BREAK, CONTINUE = "break", "continue"

    def __init__(self):
        self.calls: collections.Counter[str] = collections.Counter()

    def loaded(self, value):
        self.calls["loaded"] += 1
        return value

    def called(self, whole, *args):
        self.calls["called"] += 1
        return whole(*args)

    def text(self, *parts):
        self.calls["text"] += 1
        return "".join([p if isinstance(p, str) else self._part(*p) for p in parts])

    def _part(self, value, conversion, form):
        return format({"": lambda v: v, "s": str, "r": repr, "a": ascii}[conversion](value), form)

    def percent(self, form, values):
        self.calls["percent"] += 1
        return form % values

    def if_(self, test, then, orelse, rest, names):
        self.calls["if_"] += 1
        way = None
        if test:
            way = then() if then else None
        elif orelse:
            way = orelse()
        return way if way is not None or rest is None else rest()

    def while_(self, test, body, orelse, rest, names, changed):
        self.calls["while_"] += 1
        while test():
            way = body() if body else None
            if way == self.BREAK or isinstance(way, Return):
                return self.after(way, orelse, rest)
        return self.after(None, orelse, rest)

    def after(self, way, orelse, rest):
        """What comes after a loop that was left so."""
        if isinstance(way, Return):
            return way
        way = orelse() if orelse and way is None else None
        return way if way is not None or rest is None else rest()

    def for_(self, iterable, body, orelse, rest, names, changed):
        self.calls["for_"] += 1
        for item in iterable:
            way = body(item)
            if way == self.BREAK or isinstance(way, Return):
                return self.after(way, orelse, rest)
        return self.after(None, orelse, rest)

    def known(self, read, name, lines, free):
        self.calls["known"] += 1
        return read()

    def try_(self, body, handlers, orelse, final, rest, names):
        self.calls["try_"] += 1
        try:
            try:
                way = body()
            except BaseException as e:
                kinds = [k and k() for k, *_ in handlers]
                found = [k is None or isinstance(e, k) for k in kinds]
                if True not in found:
                    raise
                way = handlers[found.index(True)][1](e)
            else:
                way = orelse() if orelse and way is None else way
        finally:
            if final:
                final()
        return way if way is not None or rest is None else rest()

    def choose(self, test, then, orelse):
        self.calls["choose"] += 1
        return then() if test else orelse()

    def and_(self, first, *others, names=()):
        self.calls["and_"] += 1
        for other in others:
            if not first:
                return first
            first = other()
        return first

    def or_(self, first, *others, names=()):
        self.calls["or_"] += 1
        for other in others:
            if first:
                return first
            first = other()
        return first

    def is_(self, a, b):
        self.calls["is_"] += 1
        return a is b

    def is_not(self, a, b):
        self.calls["is_not"] += 1
        return a is not b

    def truth(self, x):
        self.calls["truth"] += 1
        return bool(x)

    def list_(self, values):
        self.calls["list_"] += 1
        return values

    def not_(self, x):
        self.calls["not_"] += 1
        return not x

    NOTHING, empty = forms.NOTHING, staticmethod(forms.empty)

    def fold(self, name, f, items, run, otherwise):
        self.calls["fold"] += 1
        return run(items()) if f is getattr(builtins, name) else otherwise()

    def collected(self, values, run, otherwise, chooses):
        self.calls["collected"] += 1
        if self.calls["collected"] % 2:
            return otherwise(values)
        kept: list = []
        run(values, kept)
        return kept

    slice_ = slice

    def item(self, x, at):
        self.calls["item"] += 1
        return x[at]

    def in_(self, x, among):
        self.calls["in_"] += 1
        return x in among

    def not_in(self, x, among):
        self.calls["not_in"] += 1
        return x not in among

    def is_sequence(self, x, n):
        self.calls["is_sequence"] += 1
        return forms.is_sequence(x, n)

    def chain(self, left, *steps):
        self.calls["chain"] += 1
        for act, right in steps:
            value = right()
            found = act(left, value)
            if not found:
                break
            left = value
        return found

    def asked(self, f):
        self.calls["asked"] += 1
        return f

    def assert_(self, test, message):
        self.calls["assert_"] += 1
        if not test:
            raise AssertionError(*(() if message is None else (message(),)))

    def result(self, way):
        return way.value if isinstance(way, Return) else None


def rewritten(f: Any, forms: Plain, space: dict[str, Any] | None = None) -> Any:
    """The function with its structured code, or itself where there is none."""
    code = structured(f)
    if isinstance(code, str):
        return f
    space = f.__globals__ | {FORMS: forms} if space is None else space
    cells = dict(zip(f.__code__.co_freevars, f.__closure__ or (), strict=True))
    closure = tuple([cells[name] for name in code.co_freevars])
    made = types.FunctionType(code, space, f.__name__, f.__defaults__, closure)
    made.__kwdefaults__ = f.__kwdefaults__
    return made


def outcome(call: Any) -> Any:
    """What a call gives, or the exception that it raises; iterators as lists."""
    try:
        found = call()
        return [*found] if isinstance(found, types.GeneratorType) else found
    except Exception as e:
        return type(e), str(e)


# --- control flow ---------------------------------------------------------------------------------
# Each function takes a list of ints, and what it does with a log is part of what it gives.


def branches(v):
    if v[0] > 2:
        a = 1
    elif v[0] > 1:
        a = 2
    elif v[0] == 1:
        a = 3
    else:
        a = 4
    if not v[1]:
        return a
    if v[1] > 1:
        pass
    else:
        return -a
    return a, v[1]


def falls_through(v):
    if v[0]:  # noqa: SIM102
        if v[1]:
            return 1


def truths(v):
    log = []
    if v and v[0] and not (v[1] or log):
        log.append(1 if log or v[1:] else 2)
    return log or v


def empty_return(v):
    for x in v:
        if x > 1:
            return
    return v


def loops(v):
    total, n = 0, 0
    for x in v:
        if x == 0:
            continue
        if x > 2:
            break
        total += x
        n += 1
    else:
        total += 100
    while total > 0:
        total -= 7
        if total == 3:
            break
        if total % 2:
            continue
        n += 10
    else:
        n = -n
    return total, n


def nested_loops(v):
    found = []
    for i, x in enumerate(v):
        for y in v[i:]:
            if x == y:
                continue
            while y:
                y -= 1
                if y == x:
                    break
                if y > 1 and x > 1:
                    return found, x, y
            else:
                found.append((x, y))
                continue
            found.append(x)
        else:
            if x > 2:
                break
    return found


def while_else_returns(v):
    k = 0
    while k < v[0]:
        k += 1
        if k == v[1]:
            return "met", k
    else:
        return "done", k


def loop_variable_after(v):
    x = "none"
    for x in v:  # noqa: B007
        pass
    for i, (a, *b) in enumerate([v, v[1:]]):  # noqa: B007
        pass
    return x, i, a, b


def starred_and_attributes(v):
    class Box:
        pass

    box, d = Box(), {}
    for box.item, d["k"] in itertools.pairwise(v):
        if box.item > d["k"]:
            break
    return box.item, d


def unbound_before(v):
    if v[0]:
        a = 1
    return a


def unbound_in_loop(v):
    for x in v:
        if x > 1:
            y = x
    return y


def deleted(v):
    a = 1
    if v[0]:
        del a
    return a


def expressions(v):
    a, b, c, *_ = v
    log = []

    def see(x):
        log.append(x)
        return x

    found = [
        see(a) if see(b) else see(c),
        see(a) and see(b) and see(c),
        see(a) or see(b) or see(c),
        not see(a),
        see(a) < see(b) <= see(c),
        see(a) < see(b) < see(c) < see(3),
        a in v[1:] is not None,
        (a and b) or (not c and a),
        (lambda q, r=a or b: q if r else -q)(c),
        (0 < a < 3 and (b if c else a)) or None,
    ]
    return found, log


def walrus(v):
    if (n := len(v)) > 2 and (m := n - 1):
        k = n
    while (n := n - 1) > 0 or (m := 0):
        pass
    return n, m, k, [y := x for x in v if (z := x) or z], y, z


def comprehensions(v):
    a = [x if x > 1 else -x for x in v if x and not x == 2]  # noqa: SIM201
    b = {x: [y for y in v if x < y < 3 or y == 0] for x in v}
    c = {(x, y) for x in v for y in a if x != y}
    d = sum(x for x in v if x > 1 or x == 0)
    return a, b, sorted(c), d


def closures(v):
    total, calls = 0, 0

    def add(x):
        nonlocal total, calls
        calls += 1
        if x > 1:
            total += x
        else:
            return -1
        return total

    for x in v:
        if x:
            last = add(x)
    fs = []
    for x in v:
        if x > 0:
            fs.append(lambda: (x, total))  # noqa: B023
    return last, total, calls, [f() for f in fs]


def counter(v):
    global COUNT
    COUNT = v[0]
    for x in v:
        if x > 1:
            COUNT += x
    return COUNT


COUNT = 0


def finals(v):
    log = []
    for x in v:
        try:
            log.append(x)
            if x == 1:
                continue
            if x == 2:
                break
            if x == 3:
                return log
            log.append(1 // x)
        except ZeroDivisionError as e:
            log.append(str(e))
            if v[0] == 0:
                raise
        else:
            log.append("else")
        finally:
            log.append("finally")
    return log, "end"


def final_overrides(v):
    for x in v:
        try:
            if x:
                return x
        finally:
            if x > 1:
                break  # noqa: B012
    return "broken"


def withs(v):
    log = []

    @contextmanager
    def note(x):
        log.append(("in", x))
        yield x
        log.append(("out", x))

    for x in v:
        with note(x) as y, nullcontext(y) as z:
            if z == 0:
                continue
            if z == 3:
                return log
        with suppress(ZeroDivisionError):
            log.append(6 // (x - 1))
            if x == 2:
                break
    return log, y


def matches(v):
    found = []
    for x in [*v, v, {"a": v}, "s", (1, *v)]:
        match x:
            case 0 | 1 if v[0]:
                found.append("low")
                continue
            case int(k) if k > 2:
                found.append(k)
                if v[0] == 3:
                    return found
            case [a, *rest] if a:
                found.append((a, rest))
            case {"a": [first, *_], **others}:
                found.append((first, others))
                break
            case str():
                found.append("s")
            case _:
                found.append("else")
    return found


def generators(v):
    def squares(n):
        for i in range(n):
            if i == 1:
                continue
            yield i * i if i > 2 else i
            if i > 3:
                return

    return [x for x in squares(v[0] + 4)], next(squares(9))


def a_generator(v):
    for x in v:
        if x:
            yield x


def classes(v):
    class Base:
        __kept = 5

        def __init__(self, x):
            self.x = x
            self.__hidden = x if x else 7

        def get(self, more=1):
            if self.x > 1:
                return self.__hidden + more
            return self.__kept

        @property
        def twice(self):
            """Twice the number.

            Of zero there is none:
                this text keeps its indentation.
            """
            text = """
            as this does"""
            return self.x * 2 if self.x else text

        def twin(self):
            if isinstance(self, Base):
                return Base(self.x).x
            return None

        @classmethod
        def make(cls, x):
            if x < 0:
                return None
            return cls(x)

        @staticmethod
        def plain(x):
            while x > 5:
                x -= 1
            return x

    class Derived(Base):
        factor = 2 if v[0] else 3

        def get(self, more=2):
            found = super().get(more)
            if found == 5:
                return __class__.__name__
            for _ in range(self.factor):
                if found > 3:
                    return super().get()
            return found

    made = [Derived.make(x) for x in v]
    return [(m.get(), m.twice, m.twin(), m.plain(m.x + 6)) for m in made]


def lambdas(v):
    f, g = lambda x: x if x > 1 else -x, lambda x: x and not x > 2
    h = [lambda x, k=k: k < x <= 3 or None for k in v]
    return [(f(x), g(x), [q(x) for q in h]) for x in v]


def defaults(v):
    def f(a, /, b=v[0] or 9, *args, c=v[1] and 8, **rest):
        """A text."""
        if a:
            return a, b, args, c, rest
        return f.__doc__

    return f(0), f(1), f(1, 2, 3, c=4, d=5), f(b=1, *v)  # noqa: B026


def decorated(v):
    def twice(f):
        @functools.wraps(f)
        def call(*args):
            if args:
                return f(*args), f(*args)
            return None

        return call

    @twice
    @twice
    def g(x):
        return x if x > 1 else "small"

    return g(v[0]), g()


def recursive(v):
    def depth(x):
        if isinstance(x, list):
            return 1 + max([depth(y) for y in x], default=0)
        return 0

    return depth([v, [v, [v]]])


def augmented(v):
    a = [*v]
    i = 0
    while i < len(a):
        if a[i] > 1:
            a[i] -= 1
            continue
        a[i] *= 10 if a[i] else 1
        i += 1
    a[1:] = a[:1] if a[0] else []
    return a


def raises(v):
    try:
        if v[0] > 1:
            raise KeyError(v[0])
        return v[5]
    except (KeyError, IndexError) as e:
        if isinstance(e, KeyError):
            raise ValueError("key") from e
        return "index"


def annotated(v: "list[int]") -> "int":
    k: int = 0
    found: list[int]
    if v[0]:
        found = v
    else:
        found: list = [k]
    return found


def imports(v):
    if v[0]:
        import math as m
    else:
        from cmath import sqrt as m
    return m.__name__


def strings(v):
    return f"{v[0] if v[1] else 'none'!r:>{6 if v[0] else 9}}" + ("ab" if v else "")


def shadowed(v):
    rest, item, test, body = v[0], 2, 3, 4
    for i in v:
        if i > rest:
            return item, test, body
        rest += 1
    return rest


def late_binding(v):
    def ask():
        return later

    if v[0]:  # noqa: SIM108
        later = 5
    else:
        later = 6
    return ask()


def conditional_function(v):
    if v[0]:

        def f(x):
            return x + 1 if x else "a"
    else:
        f = None
    return f and f(v[1])


def try_in_try(v):
    out = []
    while True:
        try:
            try:
                if not v:
                    break
                x = v.pop()
                if x == 2:
                    continue
                out.append(8 // x)
            finally:
                out.append("f")
        except ZeroDivisionError:
            out.append("z")
            if len(out) > 8:
                return out
    return out, "broke"


SAMPLES = [[*v] for v in itertools.product(range(4), repeat=3)] + [[0, 1, 2, 3, 1], [3, 2, 1, 0, 2]]


def chained_calls(v):
    if len(v) > 2:
        return functools.partial(max, 1)(*v), string.Template("$a").substitute(a=1)
    return operator.itemgetter(0)(v)


def texts(v):
    n, wide = len(v), 12
    doubled = f"{{{n}}} {v!r:>{wide}} {n:0{wide}.{2}f}|{v=}{'a' if v else 'b'!s:^5}"
    return doubled, "%d %s" % (n, v), "%r" % (v,), f"plain", "%%" % (), f"{n!a}"  # noqa


def names_of_nested(v):
    inner = None
    if v:

        def inner():
            return 1

    class Local:
        def method(self):
            if v:
                return len(v), lambda: 2
            return inner, inner

    return inner and inner.__qualname__, getattr(Local().method()[1], "__qualname__", None)


def folds(v):
    some = [max((x for x in v if x), default=0), min((x for x in v), key=lambda x: -x, default=1)]
    total = sum((last := x) for x in v for w in v if w is not x and w in v) + sum([1 for _ in v], 2)
    last = last if total > 2 + len(v) else 0
    every = any([x > 2 for x in v]), all(x > 2 for x in v), sum(v for v in v)
    return some, total, last, every, max(x for x in v), 9 not in v


def comparing_matches(v):
    found = []
    for s in (*v, None, "a", True, (1, 2), [3], (4, 5)):
        match s:
            case 0 | 1 as k if k not in v:
                found.append(k)
            case None | "a":
                found.append("none")
            case (1, second) | (second, 1):
                found.append(second)
            case [w]:
                found.append(w)
            case w if (u := w) is True or (u is not None and u == 2):
                found.append((w, u))
            case _:
                found.append("other")
    return found, k if 0 in v else 1, w


OWN = [
    f for f in [*globals().values()]
    if isinstance(f, types.FunctionType) and f.__code__.co_varnames[:1] == ("v",)
]  # fmt: skip
UNBOUND = {unbound_before, unbound_in_loop, deleted, closures, walrus, shadowed, withs}


@pytest.mark.parametrize("f", OWN, ids=lambda f: f.__name__)
def test_a_rewritten_function_does_what_it_did(f):
    forms = Plain()
    space = {**globals(), FORMS: forms}
    g = rewritten(f, forms, space)
    if f is a_generator:
        assert structured(f) == "it is a generator"
        return
    if f is final_overrides:
        assert structured(f) == "its finally block is left by return, break or continue"
        return
    assert g is not f, structured(f)
    for v in SAMPLES:
        expected, found = (outcome(lambda h=h: h(copy.deepcopy(v))) for h in (f, g))  # noqa: B023
        if f in UNBOUND and isinstance(expected, tuple) and expected[0] is UnboundLocalError:
            assert issubclass(found[0], NameError)
        else:
            assert found == expected, v


ASSERTS = """
def asserts(v):
    assert v, "never"
    assert v[0] < 3, f"too large: {v[0]}"
    assert v[1]
    return v
"""


@pytest.fixture(scope="module")
def asserts(tmp_path_factory):
    """A function with assertions, which pytest has not rewritten."""
    return module(ASSERTS, tmp_path_factory.mktemp("capture"), "with_assertions").asserts


def test_assertions_are_forms(asserts):
    g = rewritten(asserts, Plain())
    assert g is not asserts
    for v in [*SAMPLES, []]:
        assert outcome(lambda v=v: g(v)) == outcome(lambda v=v: asserts(v))


def test_every_form_is_met(asserts):
    forms = Plain()
    for f in [*OWN, asserts]:
        g = rewritten(f, forms, {**globals(), FORMS: forms})
        for v in SAMPLES:
            outcome(lambda g=g, v=v: g([*v]))
    names = {"if_", "while_", "for_", "choose", "and_", "or_", "not_", "chain", "assert_"}
    names |= {"asked", "called", "text", "percent", "fold", "item", "list_", "truth"}
    names |= {"known", "try_", "collected", "is_", "is_not", "in_", "not_in", "is_sequence"}
    names |= {"loaded"}
    assert {*forms.calls} == names


# fmt: off
PAIR = lambda x: x if x > 1 else -x, lambda x: (x or 5) if not x > 2 else 0 < x < 4
MANY = [lambda x: x and 1, lambda x: x or 2,
        lambda x: (x if x else 3), lambda x, y=lambda q: q or 9: y(x) if x < 2 else y(0)]
SAME = lambda x: x or 1, lambda x: x or 1
# fmt: on


@pytest.mark.parametrize("f", [*PAIR, *MANY, *SAME])
def test_lambdas_of_one_line_are_told_apart(f):
    g = rewritten(f, Plain())
    assert g is not f, structured(f)
    assert [g(x) for x in range(5)] == [f(x) for x in range(5)]


def looks_at_its_frame(v):
    return sorted(locals()) if v else 0


class Itself:
    def twin(self, x):
        """A text of

        many lines.
        """
        if isinstance(x, Itself):
            return x
        return Itself() if x else None


def test_a_method_with_a_text_of_many_lines_that_names_its_class_is_read():
    code = structured(Itself.twin)
    assert not isinstance(code, str)
    assert code.co_firstlineno == Itself.twin.__code__.co_firstlineno
    one = Itself()
    for x in (one, 0, 1):
        made = rewritten(Itself.twin, Plain())(one, x)
        assert made is one.twin(x) or (type(made) is Itself and x == 1)


def test_a_function_that_looks_at_its_frame_is_left():
    assert structured(looks_at_its_frame) == "it looks at its own frame"


def test_a_function_without_source_is_left():
    space = {}
    exec("def f(v):\n    return 1 if v else 2", space)
    assert structured(space["f"]) == "its source is not there"


def test_a_function_whose_file_was_changed_is_left(tmp_path):
    path = tmp_path / "changed.py"
    path.write_text("def f(v):\n    if v:\n        return 1\n    return 2\n")
    spec = importlib.util.spec_from_file_location("changed", path)
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    path.write_text("def f(v):\n    if v:\n        return 1\n    return 3\n")
    assert structured(made.f) == "its source is not what it was compiled from"


# --- the standard library as material -------------------------------------------------------------


def library(module: Any) -> tuple[Any, Plain, int]:
    """A module once more, without parts in C; its functions and methods have structured code."""
    forms, count = Plain(), 0
    spec = importlib.util.spec_from_file_location(module.__name__, module.__file__)
    made = importlib.util.module_from_spec(spec)
    without = {"_heapq": None, "_bisect": None, module.__name__: made}
    with mock.patch.dict(sys.modules, without):
        spec.loader.exec_module(made)
    vars(made)[FORMS] = forms
    spaces = [made] + [c for c in vars(made).values() if isinstance(c, type)]
    for space in spaces:
        if space is not made and space.__module__ != module.__name__:
            continue
        for f in [*vars(space).values()]:
            kind = type(f) if isinstance(f, classmethod | staticmethod) else None
            plain = f.__func__ if kind else f
            if isinstance(plain, types.FunctionType) and plain.__globals__ is vars(made):
                g = rewritten(plain, forms, vars(made))
                if g.__code__.co_freevars == plain.__code__.co_freevars:
                    count += g is not plain
                    plain.__code__ = g.__code__
    return made, forms, count


TEXT = """  The quick brown fox -- who is well-known -- jumps over the lazy dog.  It
        does so twice a day; averylongwordthatdoesnotfitintoaline too!\n\n    And again."""


def wrapped(m):
    kinds = [{}, {"break_long_words": False}, {"max_lines": 2}, {"initial_indent": "> "},
             {"drop_whitespace": False}, {"fix_sentence_endings": True}]  # fmt: skip
    found = [m.wrap(TEXT, w, **k) for w in (10, 23, 70) for k in kinds]
    return [*found, m.dedent(TEXT), m.indent(TEXT, "* "), m.shorten(TEXT, 30), m.fill(TEXT, 40)]


def fractional(m):
    F = m.Fraction
    xs = [F(1, 3), F("-2.5e-1"), F("7/21"), F(0.375), F(-5), F(3, 7)]
    found = [op(a, b) for a in xs for b in xs for op in
             (F.__add__, F.__sub__, F.__mul__, F.__truediv__, F.__floordiv__, F.__mod__, F.__lt__,
              F.__eq__)]  # fmt: skip
    found += [
        f(a) for a in xs for f in (round, abs, int, float, str, hash, F.__ceil__, F.__trunc__)
    ]
    found += [a.limit_denominator(5) for a in xs] + [a**2 for a in xs] + [a**-1 for a in xs]
    found += [outcome(lambda t=t: F(t)) for t in ("x", "1/0", "1 / 2", " 3 ", "1_0/3")]
    return [str(x) for x in found]


def statistical(m):
    data = [2.5, 3.0, 3.0, -1.25, 7.5, 0.5, 3.0, 2.5]
    names = ("mean", "fmean", "median", "median_low", "median_high", "median_grouped", "mode",
             "multimode", "pvariance", "variance", "stdev", "pstdev", "quantiles")  # fmt: skip
    found = [getattr(m, n)(data) for n in names]
    found += [m.harmonic_mean([1, 2, 4]), m.geometric_mean([1, 2, 4]), m.harmonic_mean([1, 0])]
    found += [m.quantiles(data, n=5, method="inclusive"), m.correlation(data, data[::-1])]
    found += [outcome(lambda n=n: getattr(m, n)([]))[1] for n in ("mean", "mode", "median")]
    d = m.NormalDist(1.0, 2.0)
    found += [d.cdf(0.3), d.inv_cdf(0.7), d.pdf(1.0), d.overlap(m.NormalDist(0, 1)), d.quantiles(3)]
    return [*found, tuple(m.linear_regression(data, data[::-1]))]


def heaps(m):
    rng = np.random.default_rng(0)
    found = []
    for n in range(12):
        data = rng.integers(0, 9, n).tolist()
        heap = [*data]
        m.heapify(heap)
        found.append([*heap])
        m.heappush(heap, 4)
        found += [m.heappop(heap), m.nsmallest(3, data), m.nlargest(3, data, key=lambda x: -x)]
        found += [m.nlargest(1, data), m.nsmallest(20, data), [*m.merge(sorted(data), [1, 5, 8])]]
        found += [m.heappushpop([*heap, 9], 3) if heap else 0]
    return found


def differences(m):
    a, b = TEXT.split(), TEXT.replace("fox", "dog").replace("twice", "once").split()[2:]
    s = m.SequenceMatcher(None, a, b)
    found = [s.ratio(), s.quick_ratio(), s.real_quick_ratio(), s.get_opcodes(),
             [*map(tuple, s.get_matching_blocks())]]  # fmt: skip
    found += [[*m.unified_diff(a, b, n=2)], [*m.context_diff(a, b)], [*m.ndiff(a, b)]]
    found += [m.get_close_matches("appel", ["ape", "apple", "peach", "puppy"])]
    return [*found, [[*g] for g in s.get_grouped_opcodes(1)], m.SequenceMatcher(
        lambda x: x == " ", "private Thread x;", "private volatile Thread x;").ratio()]  # fmt: skip


def bisections(m):
    data = [1, 2, 2, 2, 5, 8, 8]
    asks = [f(data, x, lo, hi) for f in (m.bisect_left, m.bisect_right) for x in range(10)
            for lo in (0, 2) for hi in (None, 5)]  # fmt: skip
    into = [*data]
    m.insort_left(into, 2)
    m.insort_right(into, 3, key=lambda x: x)
    return asks, into, outcome(lambda: m.bisect_left(data, 1, -1))


def templates(m):
    t = m.Template("$who likes ${what}; $$5, $missing")
    f = m.Formatter()
    found = [t.safe_substitute(who="a", what="b"), outcome(lambda: t.substitute(who="a"))]
    found += [f.format("{0!r:>8} {a.real} {b[1]} {}", 1, a=2.5, b=[3, 4]) if 0 else ""]
    found += [f.format("{0!r:>8} {a.real:{w}} {b[1]}", 1, a=2.5, b=[3, 4], w=6)]
    return [*found, outcome(lambda: f.format("{0} {}", 1)), m.capwords("  a b-c  d ", None)]


LIBRARIES = [
    (textwrap, wrapped, 7), (fractions, fractional, 20), (statistics, statistical, 30),
    (heapq, heaps, 10), (difflib, differences, 12), (bisect, bisections, 2), (string, templates, 5),
]  # fmt: skip


@pytest.mark.parametrize(
    ("module", "use", "least"), LIBRARIES, ids=lambda m: getattr(m, "__name__", "")
)
def test_a_library_whose_functions_are_rewritten_does_what_it_did(module, use, least):
    made, forms, count = library(module)
    assert count >= least
    assert use(made) == use(module)
    assert forms.calls.total() >= 10
