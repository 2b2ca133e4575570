"""Records: frozen classes with slots, as ``dataclass(frozen=True, slots=True)`` makes them, but without generated code.

``dataclass`` writes and compiles half a dozen functions for each class, which takes 0.4 ms; at a start that is a hundred classes. A record takes
a twentieth of it, and is a dataclass to everything that asks (``fields``, ``replace``, ``asdict``, type checkers).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform

_T = TypeVar("_T")


@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field,))
def record(cls: type[_T]) -> type[_T]:
    """Class decorator: the annotated names are the fields, as of a dataclass. Records are equal, and hashed, by their values."""

    def equal(self: Any, other: object) -> bool:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    values = _values(tuple(cls.__annotations__))
    methods = {"__eq__": equal, "__hash__": lambda self: hash(values(self)), "__setattr__": _refuse, "__delattr__": _refuse}
    return _made(cls, methods)


@dataclass_transform(eq_default=False, field_specifiers=(dataclasses.field,))
def entity(cls: type[_T]) -> type[_T]:
    """As ``record``, but its fields can be set, and it is equal to itself alone."""
    return _made(cls, {})


def _made(cls: type[_T], methods: Mapping[str, Any]) -> type[_T]:
    """``cls`` anew, with slots: they cannot be added to a class."""
    names = tuple(cls.__annotations__)
    own = {name: value for name, value in cls.__dict__.items() if name not in ("__dict__", "__weakref__")}
    given = {name: own.pop(name) for name in names if name in own}  # defaults
    values = _values(names)

    def shown(self: Any) -> str:
        return f"{made.__qualname__}({', '.join(f'{name}={value!r}' for name, value in zip(names, values(self), strict=True))})"

    common = {"__repr__": shown, "__reduce__": lambda self: (made, values(self)), "__match_args__": names, "__slots__": names}
    made: Any = type(cls.__name__, cls.__bases__, {**common, **methods, **own, "__dataclass_fields__": _Fields(names, given)})
    made.__qualname__ = cls.__qualname__
    made.__init__ = _init(made, names, given)
    result: type[_T] = made
    return result


class _Fields:
    """Descriptions of the fields as dataclasses have them, made when they are first asked for."""

    def __init__(self, names: Sequence[str], given: Mapping[str, Any]) -> None:
        self._names, self._given = names, given

    def __get__(self, instance: Any, owner: Any) -> Any:
        types = {name: owner.__annotations__[name] for name in self._names}
        members = {"__doc__": owner.__name__, "__annotations__": types, **self._given}  # a doc, or dataclass would write one
        like: Any = type(owner.__name__, (), members)
        fields: Any = dataclasses.dataclass(init=False, repr=False, eq=False)(like).__dataclass_fields__
        owner.__dataclass_fields__ = fields
        return fields


def _values(names: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    """A function from a record to the values of its fields."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda self: tuple(getattr(self, name) for name in names)


def _init(cls: type, names: Sequence[str], given: Mapping[str, Any]) -> Callable[..., None]:
    setters = [getattr(cls, name).__set__ for name in names]
    count = len(names)

    defaults: dict[str, Any] = {}
    factories: dict[str, Callable[[], Any]] = {}
    for name in names:
        value = given.get(name, dataclasses.MISSING)
        if isinstance(value, dataclasses.Field):
            if value.default_factory is not dataclasses.MISSING:
                factories[name] = value.default_factory
            value = value.default
        if value is not dataclasses.MISSING:
            defaults[name] = value

    def default(name: str) -> Any:
        if name in defaults:
            return defaults[name]
        if name not in factories:
            raise TypeError(f"{cls.__qualname__} lacks the field {name!r}")
        return factories[name]()

    def complete(values: Sequence[Any], named: dict[str, Any]) -> list[Any]:
        if len(values) > count:
            raise TypeError(f"{cls.__qualname__} takes {count} fields, {len(values)} were given")
        rest = [named.pop(name) if name in named else default(name) for name in names[len(values) :]]
        for name in named:
            problem = "was given twice the field" if name in names else "has no field"
            raise TypeError(f"{cls.__qualname__} {problem} {name!r}")
        return [*values, *rest]

    # What follows the first values, where all of it has a value to begin with.
    tails = {
        size: tuple(defaults[name] for name in names[size:]) for size in range(count + 1) if all(map(defaults.__contains__, names[size:]))
    }

    def __init__(self: Any, /, *values: Any, **named: Any) -> None:
        if named or len(values) != count:
            tail = None if named else tails.get(len(values))
            values = tuple(complete(values, named)) if tail is None else values + tail
        for put, value in zip(setters, values):  # noqa: B905 - as many: it is what takes the time
            put(self, value)

    return __init__


def _refuse(self: Any, name: str, *_value: Any) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot change the field {name!r}")
