"""The test functions of mixed.h: numbers, options and conditions; constraints; several objectives."""
from math import cos, e, exp, log2, log10, pi, sqrt

SHIFT = (1.2, -2.3, 0.7, 3.1, -1.6)


def sphere(x):
    return sum((a - s) ** 2 for a, s in zip(x, SHIFT))


def rosenbrock(x):
    return sum(100 * (b - a * a) ** 2 + (1 - a) ** 2 for a, b in zip(x, x[1:]))


def ackley(x):
    y = [a - 4 * s for a, s in zip(x, SHIFT)]
    n = len(y)
    return (
        -20 * exp(-0.2 * sqrt(sum(a * a for a in y) / n)) - exp(sum(cos(2 * pi * a) for a in y) / n) + 20 + e
    )


def branin(x):
    a, b = x
    return (b - 5.1 / (4 * pi * pi) * a * a + 5 / pi * a - 6) ** 2 + 10 * (1 - 1 / (8 * pi)) * cos(a) + 10


ALPHA = (1.0, 1.2, 3.0, 3.2)
A = (
    (10, 3, 17, 3.5, 1.7, 8),
    (0.05, 10, 17, 0.1, 8, 14),
    (3, 3.5, 1.7, 10, 17, 8),
    (17, 8, 0.05, 10, 0.1, 14),
)
P = (
    (0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886),
    (0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991),
    (0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650),
    (0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381),
)


def hartmann6(x):
    return -sum(
        ALPHA[i] * exp(-sum(A[i][j] * (x[j] - P[i][j]) ** 2 for j in range(6))) for i in range(4)
    )


def training(x):
    """Like a fine-tuning: rate (log), momentum, iterations (integer, log), blocks (integer), optimizer, loss."""
    rate, momentum, iterations, blocks, optimizer, loss = x
    r = log10(rate) + (2.0, 2.6, 3.4, 3.0)[int(optimizer)]
    m = momentum - (0.9, 0.8, 0.3, 0.6)[int(optimizer)]
    i = log2(iterations) - 9 + blocks / 4
    return r * r + 2 * m * m + 0.1 * i * i + (0.3, 0.0, 0.8)[int(loss)] + 0.05 * (blocks - 5 - loss) ** 2 + 0.1 * optimizer


def recipes(x):
    """Each kind has parameters of its own: None where it does not hold."""
    kind, alpha, rate, steps, rounding, bits = x
    if kind == 0:
        return 1.0
    if kind == 1:
        return 0.5 + 4 * (alpha - 0.37) ** 2
    r = log10(rate) + 3.3 + (0.5 if rounding == 1 else 0)
    return 0.1 + 0.2 * r * r + 0.02 * (steps - 17) ** 2 / 10 + (0.25, 0.0, 0.4)[int(rounding)] + 0.05 * (8 - bits)


def latency(x):
    """(time, violation): each part is quicker and less accurate the smaller its number; a kind changes both."""
    a, b, c, n, kind = x
    time = 1 + 2 * a + b + 0.5 * c + 0.2 * n + (0.6, 0.3, 0.0)[int(kind)]
    loss = (0.02, 0.05, 0.11)[int(kind)] + 0.3 * (1 - a) ** 2 + 0.2 * (1 - b) ** 2 + 0.1 * (1 - c) ** 2 + 0.02 * (8 - n)
    return time, loss - 0.25


def zdt1(x):
    g = 1 + 9 * sum(x[1:]) / (len(x) - 1)
    return x[0], g * (1 - sqrt(x[0] / g))


def zdt2(x):
    g = 1 + 9 * sum(x[1:]) / (len(x) - 1)
    return x[0], g * (1 - (x[0] / g) ** 2)


def tradeoff(x):
    """(time, loss, violation) of a mixed space."""
    time, violation = latency(x)
    return time, violation + 0.25, violation - 0.1


# name, (function, space, objectives, constraints); a space has (kind, low, high, log, condition) for each
# parameter, of which a condition is (param, options)
def floats(n, low, high):
    return [("float", low, high, False, None)] * n


def options(n, when=None):
    return ("options", 0, n - 1, False, when)


FUNCTIONS = {
    "sphere": (sphere, floats(5, -5, 5), 1, 0),
    "rosenbrock": (rosenbrock, floats(4, -2.048, 2.048), 1, 0),
    "ackley": (ackley, floats(5, -32.768, 32.768), 1, 0),
    "branin": (branin, [("float", -5, 10, False, None), ("float", 0, 15, False, None)], 1, 0),
    "hartmann6": (hartmann6, floats(6, 0, 1), 1, 0),
    "training": (
        training,
        [
            ("float", 1e-6, 1, True, None),
            ("float", 0, 1, False, None),
            ("int", 16, 4096, True, None),
            ("int", 1, 12, False, None),
            options(4),
            options(3),
        ],
        1,
        0,
    ),
    "recipes": (
        recipes,
        [
            options(3),
            ("float", 0, 1, False, (0, (1,))),
            ("float", 1e-6, 1, True, (0, (2,))),
            ("int", 1, 50, False, (0, (2,))),
            options(3, (0, (2,))),
            ("int", 2, 8, False, (0, (1, 2))),
        ],
        1,
        0,
    ),
    "latency": (latency, floats(3, 0, 1) + [("int", 0, 8, False, None), options(3)], 1, 1),
    "zdt1": (zdt1, floats(8, 0, 1), 2, 0),
    "zdt2": (zdt2, floats(8, 0, 1), 2, 0),
    "tradeoff": (tradeoff, floats(3, 0, 1) + [("int", 0, 8, False, None), options(3)], 2, 1),
}
REFERENCE = {"zdt1": (1.1, 7.0), "zdt2": (1.1, 7.0), "tradeoff": (6.7, 0.36)}  # of the hypervolume


def missed_volume(points, reference):
    """The area above and right of no point, up to the reference, in parts of the whole."""
    total = reference[0] * reference[1]
    area, ceiling = 0.0, reference[1]
    for a, b in sorted(points):
        if a < reference[0] and b < ceiling:
            area += (reference[0] - a) * (ceiling - b)
            ceiling = b
    return 1 - area / total
