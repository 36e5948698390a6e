from __future__ import annotations

import pytest

from paceline.server.account import Account
from paceline.server.api_errors import ApiError
from paceline.server.caller import Anyone


class Purse(Anyone):
    """Writes down what it is told."""

    def __init__(self) -> None:
        super().__init__("purse")
        self.spent: list[int] = []
        self.running = 0

    def begin(self) -> None:
        if self.running:
            raise ApiError(429, "One at a time.")
        self.running += 1

    def spend(self, tokens: int) -> None:
        self.spent.append(tokens)

    def end(self) -> None:
        self.running -= 1


def test_each_prompt_gets_back_what_was_cached_of_it() -> None:
    purse = Purse()
    account = Account(purse, 30)
    for cached, prompt in ((16, 0), (16, 0), (0, 2), (8, 1), (8, 1)):
        account.read(cached, prompt)
    account.close()
    assert sum(purse.spent) == 30 - 16 - 8


def test_a_reply_costs_what_was_not_cached_and_what_was_written() -> None:
    purse = Purse()
    account = Account(purse, 100)
    assert purse.spent == [100]  # at once: whoever leaves before the first token has paid
    account.read(64)
    account.wrote(3)
    account.read(80)  # by another choice
    account.wrote(0)
    assert purse.spent == [100, -64, 3]
    account.read(5, prompt=1)
    assert purse.spent == [100, -64, 3, -5]
    account.close()
    account.close()
    assert purse.running == 0


def test_a_reply_that_never_ran_costs_nothing() -> None:
    purse = Purse()
    Account(purse, 100).close(ran=False)
    assert (sum(purse.spent), purse.running) == (0, 0)


def test_a_refusal_takes_no_place() -> None:
    purse = Purse()
    Account(purse, 1)
    with pytest.raises(ApiError):
        Account(purse, 1)
    assert (purse.spent, purse.running) == ([1], 1)
