"""The test functions of functions.h, in the same integer arithmetic: both sides agree to the last bit."""

MASK = (1 << 64) - 1


def mix(z):
    """splitmix64's finaliser."""
    z = (z + 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ z >> 27) * 0x94D049BB133111EB) & MASK
    return z ^ z >> 31


def table(f, i, a, b):
    """A number of 16 bits that looks random."""
    return mix(mix(mix(mix(f) + i) + a) + b) >> 48


def separable(x):
    return sum(table(1, i, o, 0) for i, o in enumerate(x))


def pairwise(x):
    n = len(x)
    total = sum(table(2, i, o, 0) for i, o in enumerate(x))
    for i in range(n):
        total += table(3, i, x[i], x[(i + 1) % n]) + table(4, i, x[i], x[(i + 5) % n])
    return total


def deceptive(x):
    """Traps of three: every step towards the hidden optimum costs, but the last (Goldberg 1987)."""
    total = 0
    for block in range(0, len(x), 3):
        hits = sum(x[i] == table(5, i, 0, 0) % 3 for i in range(block, block + 3))
        total += 0 if hits == 3 else 1 + hits
    return total


def plateau(x):
    """The first eight matter, three of them at a time; between the steps all is flat."""
    misses = sum(x[i] != table(6, i, 0, 0) % 4 for i in range(8))
    return (misses + 2) // 3 * 100 + (x[8] != 1)


def threshold(x):
    """Ops as fp32, dynamic or static: time to save, losses with a long tail, a limit on their sum."""
    loss = time = 0
    for i, o in enumerate(x):
        sensitive = table(7, i, 0, 0)
        weight = 64 + table(8, i, 0, 0) % 1024
        loss += 0 if o == 0 else (sensitive * sensitive >> 16) * sensitive >> (16 + 2 * (o == 1))
        time += weight * (4, 2, 1)[o]
    limit = 90000
    return time if loss <= limit else time + (loss - limit)


def decaying(x):
    """Many parameters, of which a few matter most."""
    return sum(table(9, i, o, 0) // (1 + i * 7 % len(x)) for i, o in enumerate(x))


# name, function, parameters, options each
FUNCTIONS = [
    ("separable", separable, 20, 5),
    ("pairwise", pairwise, 12, 4),
    ("deceptive", deceptive, 15, 3),
    ("plateau", plateau, 12, 4),
    ("threshold", threshold, 40, 3),
    ("decaying", decaying, 40, 8),
    ("small", pairwise, 5, 4),
]
