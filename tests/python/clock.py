"""A clock for tests of time budgets: seconds pass only where an estimator of the test says so."""


class Clock:
    """`interrupted_at` is the second at which Ctrl-C arrives. The fixture `clock` sets it up."""

    now = 0.0
    interrupted_at = float("inf")

    @classmethod
    def tick(cls):
        """One second passes."""
        cls.now += 1
        if cls.now == cls.interrupted_at:
            raise KeyboardInterrupt
