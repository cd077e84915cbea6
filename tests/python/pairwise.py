"""Cases that cover every pair of values of several options, instead of their full product."""

from itertools import combinations, product


def pairwise(*options, allowed=lambda *values: True):
    """Cases, one value per option, such that every pair of values of two options is in one.

    Most faults need one or two options to be as they are. Each case is the one, of a greedy choice,
    that covers most of the pairs that are left, so their number is little more than the product of
    the two longest options. The cases are the same in every run.

    Parameters
    ----------
    *options : iterable
        The values of each.
    allowed : callable
        Whether there is a case of these values. Pairs without one are left out.

    Examples
    --------
    >>> pairwise("ab", [1, 2], [True, False])
    [('a', 1, True), ('a', 2, False), ('b', 1, False), ('b', 2, True)]
    """
    options = [list(values) for values in options]
    # With few cases in all, each is judged by how many of the pairs that are left it has.
    cases = [
        numbers
        for numbers in product(*(range(len(values)) for values in options))
        if allowed(*(values[number] for values, number in zip(options, numbers, strict=True)))
    ]
    pairs = {case: set(combinations(enumerate(case), 2)) for case in cases}
    missing = set().union(*pairs.values())
    chosen = []
    while missing:
        best = max(cases, key=lambda case: len(pairs[case] & missing))
        missing -= pairs[best]
        chosen.append(best)
        cases = [case for case in cases if pairs[case] & missing]
    return [
        tuple(values[number] for values, number in zip(options, case, strict=True))
        for case in sorted(chosen)
    ]
