"""A property that is computed once, without a lock.

`functools.cached_property` of Python 3.11 computes under a lock that all instances share. A process
that is forked while another thread holds it waits for ever, and instances wait for each other. Here
two threads may both compute a value; the first that is stored is the one that both get.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

__all__ = ["cached_property"]

Value = TypeVar("Value")


class cached_property(Generic[Value]):  # noqa: N801 (as the standard library calls it)
    """Compute a value on first use, and keep it in the instance.

    Examples
    --------
    >>> from onefold._utils.cached_property import cached_property
    >>> class Squares:
    ...     @cached_property
    ...     def first(self):
    ...         print("computed")
    ...         return [0, 1, 4]
    >>> squares = Squares()
    >>> squares.first is squares.first
    computed
    True
    """

    def __init__(self, compute: Callable[[Any], Value]) -> None:
        self.compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> cached_property[Value]: ...

    @overload
    def __get__(self, instance: object, owner: type | None = None) -> Value: ...

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        known = instance.__dict__
        if self.name in known:
            return known[self.name]
        return known.setdefault(self.name, self.compute(instance))
