"""A call of a jitted function in machine code: what it depends on is looked at, then code is run.

    ptr @guarded(ptr %self, ptr %args, i64 %n, ptr %names)     a vectorcallfunc [PEP 590]

One function serves every jitted object.  What it reads is a table: for each program that calls of
its form may run some checks, one after the other, and what is run where all of them hold.  Where no
program's do, Python's function is called, which does what it would have done without any of this.

A check is four words: its number, the object that it looks at, which may be a slot, and two more.
Slots are the arguments, and after them what checks have taken out of containers.  Objects are used
by documented functions of C, but for the class of an object and the fields of arrays and of
functions: whether these stand where CPython's and NumPy's headers say is looked at before
(`objects_are_as_stated`).
"""

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from lineara.engines.callable_class import WORD, set_code, with_room
from lineara.engines.native.machine_code import Compiler, compiler
from lineara.engines.native.symbols import (
    FIELDS,
    OF_FUNCTION,
    address_of,
    functions_are_as_stated,
    objects_are_as_stated,
)

SLOTS = 64  # arguments, and what is taken out of them; operands

API = {
    "Py_IncRef": "void (ptr)",
    "Py_DecRef": "void (ptr)",
    "PyCell_Get": "ptr (ptr)",
    "PyContextVar_Get": "i32 (ptr, ptr, ptr)",
    "PyDict_GetItemWithError": "ptr (ptr, ptr)",
    "PyDict_Next": "i32 (ptr, ptr, ptr, ptr)",
    "PyDict_Size": "i64 (ptr)",
    "PyErr_Clear": "void ()",
    "PyErr_ExceptionMatches": "i32 (ptr)",
    "PyErr_Occurred": "ptr ()",
    "PyList_GetItem": "ptr (ptr, i64)",
    "PyList_Size": "i64 (ptr)",
    "PyLong_AsLongLong": "i64 (ptr)",
    "PyObject_CallNoArgs": "ptr (ptr)",
    "PyObject_CallObject": "ptr (ptr, ptr)",
    "PyObject_CallOneArg": "ptr (ptr, ptr)",
    "PyObject_GenericGetDict": "ptr (ptr, ptr)",
    "PyObject_GetAttr": "ptr (ptr, ptr)",
    "PyObject_RichCompareBool": "i32 (ptr, ptr, i32)",
    "PyObject_Vectorcall": "ptr (ptr, ptr, i64, ptr)",
    "PySequence_GetItem": "ptr (ptr, i64)",
    "PySequence_Size": "i64 (ptr)",
    "PyTuple_GetItem": "ptr (ptr, i64)",
    "PyTuple_Size": "i64 (ptr)",
    "memcmp": "i32 (ptr, ptr, i64)",
}

# Each check: %x is the object, %b and %c are its words; it ends at %holds or %misses.
CHECKS = {
    # %x is of the class b
    "class": """
  %class.of = getelementptr i8, ptr %x, i64 {CLASS}
  %class.is = load ptr, ptr %class.of
  %class.same = icmp eq ptr %class.is, %b
  br i1 %class.same, label %holds, label %misses""",
    # an int b that fits into 64 bits with its sign changed
    "whole": """
  %whole.of = getelementptr i8, ptr %x, i64 {CLASS}
  %whole.is = load ptr, ptr %whole.of
  %whole.same = icmp eq ptr %whole.is, %b
  br i1 %whole.same, label %whole.read, label %misses
whole.read:
  %whole.value = call i64 @PyLong_AsLongLong(ptr %x)
  switch i64 %whole.value, label %holds [ i64 -1, label %whole.odd
                                          i64 -9223372036854775808, label %misses ]
whole.odd:
  %whole.error = call ptr @PyErr_Occurred()
  %whole.fine = icmp eq ptr %whole.error, null
  br i1 %whole.fine, label %holds, label %misses""",
    "is": """
  %is.same = icmp eq ptr %x, %b
  br i1 %is.same, label %holds, label %misses""",
    # %x is of the class c, and equals b
    "equal": """
  %equal.of = getelementptr i8, ptr %x, i64 {CLASS}
  %equal.is = load ptr, ptr %equal.of
  %equal.same = icmp eq ptr %equal.is, %c
  br i1 %equal.same, label %equal.ask, label %misses
equal.ask:
  %equal.said = call i32 @PyObject_RichCompareBool(ptr %x, ptr %b, i32 2)
  %equal.yes = icmp eq i32 %equal.said, 1
  br i1 %equal.yes, label %holds, label %misses""",
    # an array as b says: the class, the dtype, the axes, their lengths and strides; and, where c is
    # not null, with the bytes that it names: how many, and where they lie
    "array": """
  %array.of = getelementptr i8, ptr %x, i64 {CLASS}
  %array.is = load ptr, ptr %array.of
  %array.class = load ptr, ptr %b
  %array.plain = icmp eq ptr %array.is, %array.class
  br i1 %array.plain, label %array.types, label %misses
array.types:
  %array.dtype.at = getelementptr i8, ptr %x, i64 {DTYPE}
  %array.dtype = load ptr, ptr %array.dtype.at
  %array.dtype.stated.at = getelementptr i64, ptr %b, i64 1
  %array.dtype.stated = load ptr, ptr %array.dtype.stated.at
  %array.dtype.same = icmp eq ptr %array.dtype, %array.dtype.stated
  %array.axes.at = getelementptr i8, ptr %x, i64 {AXES}
  %array.axes = load i32, ptr %array.axes.at
  %array.n = sext i32 %array.axes to i64
  %array.axes.stated.at = getelementptr i64, ptr %b, i64 2
  %array.axes.stated = load i64, ptr %array.axes.stated.at
  %array.axes.same = icmp eq i64 %array.n, %array.axes.stated
  %array.alike = and i1 %array.dtype.same, %array.axes.same
  br i1 %array.alike, label %array.lies, label %misses
array.lies:
  %array.dims.at = getelementptr i8, ptr %x, i64 {DIMS}
  %array.dims = load ptr, ptr %array.dims.at
  %array.strides.at = getelementptr i8, ptr %x, i64 {STRIDES}
  %array.strides = load ptr, ptr %array.strides.at
  %array.dims.stated = getelementptr i64, ptr %b, i64 3
  %array.strides.stated = getelementptr i64, ptr %array.dims.stated, i64 %array.n
  br label %array.axis
array.axis:
  %array.j = phi i64 [ 0, %array.lies ], [ %array.next, %array.on ]
  %array.more = icmp slt i64 %array.j, %array.n
  br i1 %array.more, label %array.look, label %array.held
array.look:
  %array.d.at = getelementptr i64, ptr %array.dims, i64 %array.j
  %array.d = load i64, ptr %array.d.at
  %array.e.at = getelementptr i64, ptr %array.dims.stated, i64 %array.j
  %array.e = load i64, ptr %array.e.at
  %array.s.at = getelementptr i64, ptr %array.strides, i64 %array.j
  %array.s = load i64, ptr %array.s.at
  %array.t.at = getelementptr i64, ptr %array.strides.stated, i64 %array.j
  %array.t = load i64, ptr %array.t.at
  %array.long = icmp eq i64 %array.d, %array.e
  %array.wide = icmp eq i64 %array.s, %array.t
  %array.both = and i1 %array.long, %array.wide
  br i1 %array.both, label %array.on, label %misses
array.on:
  %array.next = add i64 %array.j, 1
  br label %array.axis
array.held:
  %array.any = icmp eq ptr %c, null
  br i1 %array.any, label %holds, label %array.bytes
array.bytes:
  %array.data.at = getelementptr i8, ptr %x, i64 {DATA}
  %array.data = load ptr, ptr %array.data.at
  %array.size = load i64, ptr %c
  %array.kept.at = getelementptr i64, ptr %c, i64 1
  %array.kept = load ptr, ptr %array.kept.at
  %array.order = call i32 @memcmp(ptr %array.data, ptr %array.kept, i64 %array.size)
  %array.equal = icmp eq i32 %array.order, 0
  br i1 %array.equal, label %holds, label %misses""",
    # a tuple or list of the class and the length that b says; its items go into slots from c on
    "items": """
  %items.of = getelementptr i8, ptr %x, i64 {CLASS}
  %items.is = load ptr, ptr %items.of
  %items.class = load ptr, ptr %b
  %items.plain = icmp eq ptr %items.is, %items.class
  br i1 %items.plain, label %items.count, label %misses
items.count:
  %items.n = call i64 @PySequence_Size(ptr %x)
  %items.stated.at = getelementptr i64, ptr %b, i64 1
  %items.stated = load i64, ptr %items.stated.at
  %items.many = icmp eq i64 %items.n, %items.stated
  br i1 %items.many, label %items.each, label %misses
items.each:
  %items.j = phi i64 [ 0, %items.count ], [ %items.next, %items.take ]
  %items.more = icmp slt i64 %items.j, %items.n
  br i1 %items.more, label %items.look, label %holds
items.look:
  %items.v = call ptr @PySequence_GetItem(ptr %x, i64 %items.j)
  %items.there = icmp ne ptr %items.v, null
  br i1 %items.there, label %items.take, label %misses
items.take:
  call void @Py_DecRef(ptr %items.v)
  %items.first = ptrtoint ptr %c to i64
  %items.slot = add i64 %items.first, %items.j
  %items.at = getelementptr ptr, ptr %slots, i64 %items.slot
  store ptr %items.v, ptr %items.at
  %items.next = add i64 %items.j, 1
  br label %items.each""",
    # an object of the class that b says, whose attributes are a dict as below
    "fields": """
  %fields.class.of = getelementptr i8, ptr %x, i64 {CLASS}
  %fields.is = load ptr, ptr %fields.class.of
  %fields.class = load ptr, ptr %b
  %fields.plain = icmp eq ptr %fields.is, %fields.class
  br i1 %fields.plain, label %fields.get, label %misses
fields.get:
  %fields.of = call ptr @PyObject_GenericGetDict(ptr %x, ptr null)
  %fields.there = icmp ne ptr %fields.of, null
  br i1 %fields.there, label %fields.look, label %misses
fields.look:
  call void @Py_DecRef(ptr %fields.of)
  br label %entries.count""",
    # a dict with the keys that b says, in their order: the class, str, how many, the keys; the
    # values go into slots from c on
    "entries": """
  %entries.of = getelementptr i8, ptr %x, i64 {CLASS}
  %entries.is = load ptr, ptr %entries.of
  %entries.class = load ptr, ptr %b
  %entries.plain = icmp eq ptr %entries.is, %entries.class
  br i1 %entries.plain, label %entries.count, label %misses
entries.count:
  %entries.dict = phi ptr [ %x, %check.entries ], [ %fields.of, %fields.look ]
  %entries.n = call i64 @PyDict_Size(ptr %entries.dict)
  %entries.text.at = getelementptr i64, ptr %b, i64 1
  %entries.text = load ptr, ptr %entries.text.at
  %entries.stated.at = getelementptr i64, ptr %b, i64 2
  %entries.stated = load i64, ptr %entries.stated.at
  %entries.many = icmp eq i64 %entries.n, %entries.stated
  store i64 0, ptr %position
  br i1 %entries.many, label %entries.each, label %misses
entries.each:
  %entries.j = phi i64 [ 0, %entries.count ], [ %entries.next, %entries.take ]
  %entries.more = icmp slt i64 %entries.j, %entries.n
  br i1 %entries.more, label %entries.look, label %holds
entries.look:
  %entries.there = call i32 @PyDict_Next(ptr %entries.dict, ptr %position, ptr %key, ptr %value)
  %entries.end = icmp eq i32 %entries.there, 0
  br i1 %entries.end, label %misses, label %entries.key
entries.key:
  %entries.k = load ptr, ptr %key
  %entries.place = add i64 %entries.j, 3
  %entries.wanted.at = getelementptr ptr, ptr %b, i64 %entries.place
  %entries.wanted = load ptr, ptr %entries.wanted.at
  %entries.same = icmp eq ptr %entries.k, %entries.wanted
  br i1 %entries.same, label %entries.take, label %entries.other
entries.other:
  %entries.k.of = getelementptr i8, ptr %entries.k, i64 {CLASS}
  %entries.k.is = load ptr, ptr %entries.k.of
  %entries.w.of = getelementptr i8, ptr %entries.wanted, i64 {CLASS}
  %entries.w.is = load ptr, ptr %entries.w.of
  %entries.one = icmp eq ptr %entries.k.is, %entries.text
  %entries.two = icmp eq ptr %entries.w.is, %entries.text
  %entries.texts = and i1 %entries.one, %entries.two
  br i1 %entries.texts, label %entries.ask, label %misses
entries.ask:
  %entries.said = call i32 @PyObject_RichCompareBool(ptr %entries.k, ptr %entries.wanted, i32 2)
  %entries.yes = icmp eq i32 %entries.said, 1
  br i1 %entries.yes, label %entries.take, label %misses
entries.take:
  %entries.v = load ptr, ptr %value
  %entries.first = ptrtoint ptr %c to i64
  %entries.slot = add i64 %entries.first, %entries.j
  %entries.at = getelementptr ptr, ptr %slots, i64 %entries.slot
  store ptr %entries.v, ptr %entries.at
  %entries.next = add i64 %entries.j, 1
  br label %entries.each""",
    # what a dict has at the key b: c, or nothing where c is null
    "item": """
  %item.is = call ptr @PyDict_GetItemWithError(ptr %x, ptr %b)
  %item.same = icmp eq ptr %item.is, %c
  br i1 %item.same, label %item.fine, label %misses
item.fine:
  %item.there = icmp ne ptr %item.is, null
  br i1 %item.there, label %holds, label %item.none
item.none:
  %item.error = call ptr @PyErr_Occurred()
  %item.absent = icmp eq ptr %item.error, null
  br i1 %item.absent, label %holds, label %misses""",
    "cell": """
  %cell.is = call ptr @PyCell_Get(ptr %x)
  %cell.set = icmp ne ptr %cell.is, null
  br i1 %cell.set, label %cell.look, label %misses
cell.look:
  call void @Py_DecRef(ptr %cell.is)
  %cell.same = icmp eq ptr %cell.is, %b
  br i1 %cell.same, label %holds, label %misses""",
    # of a function: the code, the defaults, and those of parameters by name; None is null
    "code": """
  %code.at = getelementptr i8, ptr %x, i64 {CODE}
  %code.is = load ptr, ptr %code.at
  %code.same = icmp eq ptr %code.is, %b
  br i1 %code.same, label %holds, label %misses""",
    "defaults": """
  %defaults.at = getelementptr i8, ptr %x, i64 {DEFAULTS}
  %defaults.is = load ptr, ptr %defaults.at
  %defaults.same = icmp eq ptr %defaults.is, %b
  br i1 %defaults.same, label %holds, label %misses""",
    "options": """
  %options.at = getelementptr i8, ptr %x, i64 {OPTIONS}
  %options.is = load ptr, ptr %options.at
  %options.same = icmp eq ptr %options.is, %b
  br i1 %options.same, label %holds, label %misses""",
    # the attribute b is c
    "attribute": """
  %attribute.is = call ptr @PyObject_GetAttr(ptr %x, ptr %b)
  %attribute.set = icmp ne ptr %attribute.is, null
  br i1 %attribute.set, label %attribute.look, label %misses
attribute.look:
  call void @Py_DecRef(ptr %attribute.is)
  %attribute.same = icmp eq ptr %attribute.is, %c
  br i1 %attribute.same, label %holds, label %misses""",
    # a dict has what b says, in that order: how many, keys and values; nothing runs meanwhile that
    # could take it away
    "dict": """
  br label %dict.count
dict.count:
  %dict.of = phi ptr [ %x, %check.dict ], [ %attributes.of, %attributes.look ]
  %dict.n = call i64 @PyDict_Size(ptr %dict.of)
  %dict.stated = load i64, ptr %b
  %dict.many = icmp eq i64 %dict.n, %dict.stated
  store i64 0, ptr %position
  br i1 %dict.many, label %dict.each, label %misses
dict.each:
  %dict.j = phi i64 [ 0, %dict.count ], [ %dict.next, %dict.on ]
  %dict.more = icmp slt i64 %dict.j, %dict.n
  br i1 %dict.more, label %dict.look, label %holds
dict.look:
  %dict.there = call i32 @PyDict_Next(ptr %dict.of, ptr %position, ptr %key, ptr %value)
  %dict.end = icmp eq i32 %dict.there, 0
  br i1 %dict.end, label %misses, label %dict.pair
dict.pair:
  %dict.k = load ptr, ptr %key
  %dict.v = load ptr, ptr %value
  %dict.twice = mul i64 %dict.j, 2
  %dict.key.place = add i64 %dict.twice, 1
  %dict.value.place = add i64 %dict.twice, 2
  %dict.key.at = getelementptr ptr, ptr %b, i64 %dict.key.place
  %dict.key = load ptr, ptr %dict.key.at
  %dict.value.at = getelementptr ptr, ptr %b, i64 %dict.value.place
  %dict.value = load ptr, ptr %dict.value.at
  %dict.one = icmp eq ptr %dict.k, %dict.key
  %dict.two = icmp eq ptr %dict.v, %dict.value
  %dict.both = and i1 %dict.one, %dict.two
  br i1 %dict.both, label %dict.on, label %misses
dict.on:
  %dict.next = add i64 %dict.j, 1
  br label %dict.each""",
    # the attributes of an object are what b says, as a dict
    "attributes": """
  %attributes.of = call ptr @PyObject_GenericGetDict(ptr %x, ptr null)
  %attributes.there = icmp ne ptr %attributes.of, null
  br i1 %attributes.there, label %attributes.look, label %misses
attributes.look:
  call void @Py_DecRef(ptr %attributes.of)
  br label %dict.count""",
    # a list has what b says: how many, and the items
    "list": """
  %list.n = call i64 @PyList_Size(ptr %x)
  %list.stated = load i64, ptr %b
  %list.many = icmp eq i64 %list.n, %list.stated
  br i1 %list.many, label %list.each, label %misses
list.each:
  %list.j = phi i64 [ 0, %check.list ], [ %list.next, %list.look ]
  %list.more = icmp slt i64 %list.j, %list.n
  br i1 %list.more, label %list.look, label %holds
list.look:
  %list.v = call ptr @PyList_GetItem(ptr %x, i64 %list.j)
  %list.next = add i64 %list.j, 1
  %list.at = getelementptr ptr, ptr %b, i64 %list.next
  %list.w = load ptr, ptr %list.at
  %list.same = icmp eq ptr %list.v, %list.w
  br i1 %list.same, label %list.each, label %misses""",
    # a list is empty, or so is this thread's, the attribute c of b
    "none": """
  %none.n = call i64 @PyList_Size(ptr %x)
  %none.any = icmp eq i64 %none.n, 0
  br i1 %none.any, label %holds, label %none.ask
none.ask:
  %none.mine = call ptr @PyObject_GetAttr(ptr %b, ptr %c)
  %none.there = icmp ne ptr %none.mine, null
  br i1 %none.there, label %none.look, label %misses
none.look:
  %none.here = call i64 @PyList_Size(ptr %none.mine)
  call void @Py_DecRef(ptr %none.mine)
  %none.closed = icmp eq i64 %none.here, 0
  br i1 %none.closed, label %holds, label %misses""",
    # a variable of the context is b, which is None where it is not set; or else c() is true
    "context": """
  %context.none.at = getelementptr ptr, ptr %table, i64 6
  %context.none = load ptr, ptr %context.none.at
  %context.failed = call i32 @PyContextVar_Get(ptr %x, ptr %context.none, ptr %value)
  %context.read = icmp eq i32 %context.failed, 0
  br i1 %context.read, label %context.look, label %misses
context.look:
  %context.is = load ptr, ptr %value
  call void @Py_DecRef(ptr %context.is)
  %context.same = icmp eq ptr %context.is, %b
  br i1 %context.same, label %holds, label %asked""",
    # x() is true
    "ask": """
  br label %asked""",
}

TEXT = """
define ptr @guarded(ptr %self, ptr %args, i64 %n, ptr %names) {
entry:
  %slots = alloca [{SLOTS} x ptr], align 16
  %given = alloca [{SLOTS} x ptr], align 16
  %position = alloca i64
  %key = alloca ptr
  %value = alloca ptr
  %table.at = getelementptr i8, ptr %self, i64 {TABLE}
  %table = load ptr, ptr %table.at
  %holder = load ptr, ptr %table
  call void @Py_IncRef(ptr %holder)
  %true.at = getelementptr ptr, ptr %table, i64 4
  %true = load ptr, ptr %true.at
  %positional = and i64 %n, 9223372036854775807
  %unnamed = icmp eq ptr %names, null
  br i1 %unnamed, label %count, label %named
named:
  %counted = call i64 @PyTuple_Size(ptr %names)
  br label %count
count:
  %keywords = phi i64 [ 0, %entry ], [ %counted, %named ]
  %every = add i64 %positional, %keywords
  %few = icmp ule i64 %every, {SLOTS}
  br i1 %few, label %copy, label %python
copy:
  %i = phi i64 [ 0, %count ], [ %i.next, %copy.one ]
  %i.more = icmp slt i64 %i, %every
  br i1 %i.more, label %copy.one, label %first
copy.one:
  %arg.at = getelementptr ptr, ptr %args, i64 %i
  %arg = load ptr, ptr %arg.at
  %slot.at = getelementptr ptr, ptr %slots, i64 %i
  store ptr %arg, ptr %slot.at
  %i.next = add i64 %i, 1
  br label %copy
first:
  %first.at = getelementptr ptr, ptr %table, i64 5
  br label %next

; --- a program: the next one, how many arguments, how many of them are named, the names ---

next:
  %next.at = phi ptr [ %first.at, %first ], [ %program, %misses ]
  %program = load ptr, ptr %next.at
  %none.left = icmp eq ptr %program, null
  br i1 %none.left, label %python, label %arguments
arguments:
  %wanted.at = getelementptr i64, ptr %program, i64 1
  %wanted = load i64, ptr %wanted.at
  %named.at = getelementptr i64, ptr %program, i64 2
  %wanted.named = load i64, ptr %named.at
  %as.many = icmp eq i64 %every, %wanted
  %as.named = icmp eq i64 %keywords, %wanted.named
  %fit = and i1 %as.many, %as.named
  br i1 %fit, label %name, label %misses
name:
  %k = phi i64 [ 0, %arguments ], [ %k.next, %name.on ]
  %k.more = icmp slt i64 %k, %keywords
  br i1 %k.more, label %name.look, label %checks
name.look:
  %k.is = call ptr @PyTuple_GetItem(ptr %names, i64 %k)
  %k.place = add i64 %k, 3
  %k.at = getelementptr ptr, ptr %program, i64 %k.place
  %k.wanted = load ptr, ptr %k.at
  %k.same = icmp eq ptr %k.is, %k.wanted
  br i1 %k.same, label %name.on, label %name.ask
name.ask:
  %k.said = call i32 @PyObject_RichCompareBool(ptr %k.is, ptr %k.wanted, i32 2)
  %k.yes = icmp eq i32 %k.said, 1
  br i1 %k.yes, label %name.on, label %misses
name.on:
  %k.next = add i64 %k, 1
  br label %name

; --- its checks ---

checks:
  %begin = add i64 %keywords, 3
  %check.first = getelementptr i64, ptr %program, i64 %begin
  br label %check
check:
  %at = phi ptr [ %check.first, %checks ], [ %at.next, %holds ]
  %kind = load i64, ptr %at
  %a.at = getelementptr i64, ptr %at, i64 1
  %a = load i64, ptr %a.at
  %b.at = getelementptr i64, ptr %at, i64 2
  %b = load ptr, ptr %b.at
  %c.at = getelementptr i64, ptr %at, i64 3
  %c = load ptr, ptr %c.at
  %a.slot = getelementptr ptr, ptr %slots, i64 %a
  %of.slot = icmp ult i64 %a, {SLOTS}
  %x.at = select i1 %of.slot, ptr %a.slot, ptr %a.at
  %x = load ptr, ptr %x.at
  switch i64 %kind, label %run [{CASES} ]
{CHECKS}
asked:
  %asked.what = phi ptr [ %c, %context.look ], [ %x, %check.ask ]
  %asked.said = call ptr @PyObject_CallNoArgs(ptr %asked.what)
  %asked.there = icmp ne ptr %asked.said, null
  br i1 %asked.there, label %asked.look, label %misses
asked.look:
  call void @Py_DecRef(ptr %asked.said)
  %asked.yes = icmp eq ptr %asked.said, %true
  br i1 %asked.yes, label %holds, label %misses
holds:
  %at.next = getelementptr i64, ptr %at, i64 4
  br label %check
misses:
  call void @PyErr_Clear()
  br label %next

; --- all of them hold: b says what is run; slots from the arguments on up to c are taken ---

run:
  %taken = ptrtoint ptr %c to i64
  br label %keep
keep:
  %kept = phi i64 [ %every, %run ], [ %kept.next, %keep.one ]
  %kept.more = icmp slt i64 %kept, %taken
  br i1 %kept.more, label %keep.one, label %operands
keep.one:
  %kept.at = getelementptr ptr, ptr %slots, i64 %kept
  %kept.is = load ptr, ptr %kept.at
  call void @Py_IncRef(ptr %kept.is)
  %kept.next = add i64 %kept, 1
  br label %keep
operands:
  %code.run = load ptr, ptr %b
  %held.at = getelementptr ptr, ptr %b, i64 1
  %held = load ptr, ptr %held.at
  %fill.at = getelementptr ptr, ptr %b, i64 2
  %fill = load ptr, ptr %fill.at
  %several.at = getelementptr i64, ptr %b, i64 3
  %several = load i64, ptr %several.at
  %count.at = getelementptr i64, ptr %b, i64 4
  %operand.count = load i64, ptr %count.at
  br label %operand
operand:
  %o = phi i64 [ 0, %operands ], [ %o.next, %operand.one ]
  %o.more = icmp slt i64 %o, %operand.count
  br i1 %o.more, label %operand.one, label %call
operand.one:
  %o.place = add i64 %o, 5
  %o.at = getelementptr i64, ptr %b, i64 %o.place
  %o.word = load i64, ptr %o.at
  %o.slot = getelementptr ptr, ptr %slots, i64 %o.word
  %o.of.slot = icmp ult i64 %o.word, {SLOTS}
  %o.from = select i1 %o.of.slot, ptr %o.slot, ptr %o.at
  %o.is = load ptr, ptr %o.from
  %o.to = getelementptr ptr, ptr %given, i64 %o
  store ptr %o.is, ptr %o.to
  %o.next = add i64 %o, 1
  br label %operand
call:
  %result = call ptr %code.run(ptr %held, ptr %given, i64 %operand.count)
  br label %leave
leave:
  %left = phi i64 [ %every, %call ], [ %left.next, %leave.one ]
  %left.more = icmp slt i64 %left, %taken
  br i1 %left.more, label %leave.one, label %ran
leave.one:
  %left.at = getelementptr ptr, ptr %slots, i64 %left
  %left.is = load ptr, ptr %left.at
  call void @Py_DecRef(ptr %left.is)
  %left.next = add i64 %left, 1
  br label %leave
ran:
  %fine = icmp ne ptr %result, null
  br i1 %fine, label %answered, label %raised
raised:
  %full.at = getelementptr ptr, ptr %table, i64 2
  %full = load ptr, ptr %full.at
  %is.full = call i32 @PyErr_ExceptionMatches(ptr %full)
  %again = icmp eq i32 %is.full, 1
  br i1 %again, label %larger, label %done
larger:
  call void @PyErr_Clear()
  br label %python
answered:
  %other.at = getelementptr ptr, ptr %table, i64 3
  %other = load ptr, ptr %other.at
  %not.done = icmp eq ptr %result, %other
  br i1 %not.done, label %undone, label %filling
undone:
  call void @Py_DecRef(ptr %result)
  br label %python
filling:
  %bare = icmp eq ptr %fill, null
  br i1 %bare, label %done, label %contain
contain:
  %are.several = icmp ne i64 %several, 0
  br i1 %are.several, label %contain.several, label %contain.one
contain.several:
  %several.filled = call ptr @PyObject_CallObject(ptr %fill, ptr %result)
  br label %contained
contain.one:
  %one.filled = call ptr @PyObject_CallOneArg(ptr %fill, ptr %result)
  br label %contained
contained:
  %filled = phi ptr [ %several.filled, %contain.several ], [ %one.filled, %contain.one ]
  call void @Py_DecRef(ptr %result)
  br label %done

; --- none fits: Python's function ---

python:
  %python.at = getelementptr ptr, ptr %table, i64 1
  %python.is = load ptr, ptr %python.at
  %gave = call ptr @PyObject_Vectorcall(ptr %python.is, ptr %args, i64 %positional, ptr %names)
  br label %done
done:
  %answer = phi ptr [ null, %raised ], [ %result, %filling ], [ %filled, %contained ],
                    [ %gave, %python ]
  call void @Py_DecRef(ptr %holder)
  ret ptr %answer
}
"""


class Word(int):
    """A word that is a number, and no object."""


class Block(tuple[Any, ...]):
    """A word that is the address of a row of words."""

    __slots__ = ()


class Check(NamedTuple):
    """One thing that is looked at: which check, at what, and two words more.

    What is looked at is an object, or the number of a slot: `Word`.  Words are numbers, blocks of
    words, and objects by their identity.
    """

    kind: str
    of: Any
    words: tuple[Any, ...] = ()


class Program(NamedTuple):
    """What calls of one form run: its checks, code as a function of Python's, and its operands.

    given       how many arguments, the last of which are those that are `names`
    slots       these, and what is taken out of them
    operands    the numbers of slots, or objects
    fill        what makes the result of the values; None: it is the value, or a tuple of them
    several     whether there is not one value
    """

    given: int
    names: tuple[str, ...]
    checks: Sequence[Check]
    slots: int
    code: Any
    operands: Sequence[Any]
    fill: Callable[..., Any] | None
    several: bool


class Table:
    """What the code reads, and all that it names: it lives as long as this does."""

    def __init__(
        self, programs: Sequence[Program], other: Callable[..., object], full: type[Exception]
    ) -> None:
        self.kept: list[Any] = []
        first = 0
        for p in reversed(programs):
            first = self.program(p, Word(first))
        holder = Word(id(self))  # which does not hold itself
        self.address: int = self.block(
            [holder, other, full, NotImplemented, True, Word(first), None]
        )

    def block(self, words: Sequence[Any]) -> int:
        """The address of a row of words."""
        memory = np.array([self.word(w) for w in words], np.int64)
        self.kept.append(memory)
        return memory.__array_interface__["data"][0]

    def word(self, value: object) -> int:
        """A word in memory."""
        if type(value) is Word:
            return value
        if type(value) is Block:
            return self.block(value)
        self.kept.append(value)
        return id(value)

    def program(self, p: Program, following: Word) -> int:
        """The address of a program."""
        words: list[Any] = [following, Word(p.given), Word(len(p.names)), *p.names]
        for c in p.checks:
            words += [NUMBERS[c.kind], c.of, *[*c.words, NULL, NULL][:2]]
        function = ctypes.pythonapi.PyCFunction_GetFunction
        function.restype, function.argtypes = ctypes.c_void_p, [ctypes.py_object]
        self.kept.append(p.code)
        fill = NULL if p.fill is None else p.fill
        run = [Word(function(p.code)), p.code.__self__, fill, Word(p.several)]
        run += [Word(len(p.operands)), *p.operands]
        return self.block([*words, RUN, NULL, Block(run), Word(p.slots)])


NUMBERS = {kind: Word(i) for i, kind in enumerate(CHECKS)}
RUN = Word(len(NUMBERS))
NULL = Word(0)


def array_block(shape: tuple[int, ...], dtype: np.dtype, strides: tuple[int, ...]) -> Block:
    """How an array lies, for the check of that name."""
    lies = map(Word, (len(shape), *shape, *strides))
    return Block((np.ndarray, dtype, *lies))


def text(table: int) -> str:
    """The function, for objects whose second word is so many bytes from their beginning."""
    places: dict[str, Any] = {**FIELDS, **OF_FUNCTION, "TABLE": table, "SLOTS": SLOTS}
    places["CASES"] = "".join([f" i64 {i}, label %check.{k}" for k, i in NUMBERS.items()])
    bodies = "".join([f"check.{kind}:{body}\n" for kind, body in CHECKS.items()])
    whole = TEXT.replace("{CHECKS}", bodies)
    for name, value in places.items():
        whole = whole.replace(f"{{{name}}}", str(value))
    declared = []
    for name, t in API.items():
        result, _, formals = t.partition(" ")
        declared.append(f'declare {result} @"py.{name}"{formals}')
        whole = whole.replace(f"@{name}(", f'@"py.{name}"(')
    return "\n".join([*declared, whole])


@cache
def _loaded(table: int) -> tuple[Any, int] | None:
    """The function in memory, and its address; None where Python lacks a function that it needs."""
    llvm: Compiler | None = compiler()
    there = {f"py.{name}": address_of(name) for name in API}
    symbols = {name: a for name, a in there.items() if a is not None}
    stated = objects_are_as_stated() and functions_are_as_stated()
    if llvm is None or len(symbols) < len(there) or not stated:
        return None
    library = llvm.shared(text(table), 1_000, symbols)
    return library, library["guarded"]


def attached(
    x: object,
    base: type,
    programs: Sequence[Program],
    other: Callable[..., object],
    full: type[Exception],
) -> Table | None:
    """Have an instance of `with_room(base)` called by code; the table is to live as long as that.

    other   what is called where no program fits, with the arguments
    full    an exception of the code after which `other` is called too
    """
    fine = all([p.slots <= SLOTS and len(p.operands) <= SLOTS for p in programs])
    loaded = _loaded(base.__basicsize__ + WORD) if fine and with_room(base) is not base else None
    if loaded is None:
        set_code(x, base)
        return None
    table = Table(programs, other, full)
    set_code(x, base, loaded[1], table.address)
    return table


__all__ = ["Block", "Check", "Program", "Word", "array_block", "attached"]
