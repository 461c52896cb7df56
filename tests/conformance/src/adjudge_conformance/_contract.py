"""What all contracts begin with: none of their tests is redefined; and how a store is opened."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import pytest

__all__ = ["Contract", "StoreContract"]


class Contract:
    """Tests that a subclass is put through, and may not redefine."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        redefined = sorted(
            name
            for name in vars(cls)
            if name.startswith("test_") and any(hasattr(base, name) for base in cls.__bases__)
        )
        if redefined:
            raise TypeError(f"{cls.__name__} redefines {', '.join(redefined)} of the contract.")


class StoreContract(Contract):
    """Says how a store is opened."""

    rounds: ClassVar[int] = 50
    durable: ClassVar[bool] = False

    # To be said by the subclass

    @staticmethod
    def open_store(place: str) -> Any:
        """Open the store at a place, in this process or another."""
        raise NotImplementedError

    @pytest.fixture
    def place(self) -> Iterator[str]:
        """Give the place of an empty store, for one test."""
        raise NotImplementedError

    @pytest.fixture
    def store(self, place: str) -> Any:
        """Open an empty store."""
        return self.open_store(place)

    def test_says_whether_it_is_durable(self, store: Any) -> None:
        """Whoever relies on it asks before."""
        assert self.durable is store.durable
