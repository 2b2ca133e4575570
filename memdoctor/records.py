"""Records: frozen classes with slots, as ``dataclass(frozen=True, slots=True)`` makes them, but without generated code.

``dataclass`` writes and compiles half a dozen functions for each class, which takes 0.4 ms; at a start that is a hundred classes. A record takes
a twentieth of it, and is a dataclass to everything that asks (``fields``, ``replace``, ``asdict``, type checkers).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform

_T = TypeVar("_T")


@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field,))
def record(cls: type[_T]) -> type[_T]:
    """Class decorator. The fields are the annotated names, as of a dataclass."""
    cls.__doc__ = cls.__doc__ or ""  # without one, dataclass would write a signature
    made: Any = dataclasses.dataclass(init=False, repr=False, eq=False, slots=True)(cls)
    fields = dataclasses.fields(made)
    names = [field.name for field in fields]
    values = _values(names)
    made.__init__ = _init(made.__qualname__, fields, [getattr(made, name).__set__ for name in names])
    made.__eq__ = lambda self, other: values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented
    made.__hash__ = lambda self: hash(values(self))
    made.__repr__ = lambda self: f"{made.__qualname__}({', '.join(f'{n}={v!r}' for n, v in zip(names, values(self), strict=True))})"
    made.__reduce__ = lambda self: (made, values(self))
    made.__setattr__ = made.__delattr__ = _refuse
    result: type[_T] = made
    return result


def _values(names: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    """A function from a record to the values of its fields."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda self: tuple(getattr(self, name) for name in names)


def _init(name: str, fields: Sequence[dataclasses.Field[Any]], setters: Sequence[Callable[[Any, Any], None]]) -> Callable[..., None]:
    places = {field.name: place for place, field in enumerate(fields)}
    count = len(fields)

    def complete(given: Sequence[Any], named: dict[str, Any]) -> list[Any]:
        if len(given) > count:
            raise TypeError(f"{name} takes {count} fields, {len(given)} were given")
        values = [*given, *[dataclasses.MISSING] * (count - len(given))]
        for key, value in named.items():
            place = places.get(key)
            if place is None or place < len(given):
                raise TypeError(f"{name} {'has no field' if place is None else 'was given twice the field'} {key!r}")
            values[place] = value
        for place, field in enumerate(fields):
            if values[place] is dataclasses.MISSING:
                factory: Any = field.default_factory
                values[place] = field.default if factory is dataclasses.MISSING else factory()
                if values[place] is dataclasses.MISSING:
                    raise TypeError(f"{name} lacks the field {field.name!r}")
        return values

    def __init__(self: Any, /, *given: Any, **named: Any) -> None:
        values = given if len(given) == count and not named else complete(given, named)
        for put, value in zip(setters, values, strict=True):
            put(self, value)

    return __init__


def _refuse(self: Any, name: str, *_value: Any) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot change the field {name!r}")
