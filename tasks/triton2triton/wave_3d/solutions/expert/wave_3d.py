"""A step of the wave equation by programs that walk through the layers, nine of them in registers.

Instructions bound it rather than memory, so a thread has several points, which share addresses,
masks and neighbours: where rows are whole vectors of 16 bytes, four points side by side, whose
neighbours in x come from the vectors before and behind; elsewhere two points below one another,
whose neighbours in y are partly the same. Only programs at an edge have masks. Each step asks
for what one of the next needs from there. Small volumes give too few programs for walks that are
worth their first layers: their programs have one layer each, and find its neighbours in the cache.
"""

import triton
import triton.language as tl

TAPS = tl.constexpr((-205 / 24, 8 / 5, -1 / 5, 8 / 315, -1 / 560))
LONGEST_WALK = 64
SHORTEST_WALK = 16
PROGRAMS_WANTED = 2112  # 16 on each of 132 multiprocessors


@triton.jit
def look(place, inside, EDGE: tl.constexpr):
    """What is at places, of which some may be outside only in programs at an edge."""
    return tl.load(place, mask=inside if EDGE else None, other=0.0 if EDGE else None)


@triton.jit
def once(place, inside, UNIT: tl.constexpr):
    """What is at places of this program only.

    The cache is for what neighbours read, but sectors of unaligned rows are neighbours', too.
    """
    policy: tl.constexpr = "evict_first" if UNIT == 4 else ""
    other: tl.constexpr = None if inside is None else 0.0
    return tl.load(place, mask=inside, other=other, eviction_policy=policy)


@triton.jit
def give(place, value, inside, EDGE: tl.constexpr, UNIT: tl.constexpr):
    """Write results. No program reads them, so the cache need not keep them."""
    policy: tl.constexpr = "evict_first" if UNIT == 4 else ""
    tl.store(place, value, mask=inside if EDGE else None, eviction_policy=policy)


@triton.jit
def quarters(vectors, Y: tl.constexpr, X: tl.constexpr):
    """The first, second, third and fourth elements of the vectors."""
    even, odd = tl.split(tl.reshape(vectors, (Y, X // 4, 2, 2)))
    first, third = tl.split(even)
    second, fourth = tl.split(odd)
    return first, second, third, fourth


@triton.jit
def beside_vectors(
    place, own, inside, x, width, EDGE: tl.constexpr, Y: tl.constexpr, X: tl.constexpr
):  # fmt: skip
    """What neighbours in x give to vectors of points."""
    a, b, c, d = quarters(look(place - 4, inside & (x >= 4), EDGE), Y, X)
    e, f, g, h = quarters(own, Y, X)
    i, j, k, m = quarters(look(place + 4, inside & (x + 4 < width), EDGE), Y, X)
    first = TAPS[1] * (d + f) + TAPS[2] * (c + g) + TAPS[3] * (b + h) + TAPS[4] * (a + i)
    second = TAPS[1] * (e + g) + TAPS[2] * (d + h) + TAPS[3] * (c + i) + TAPS[4] * (b + j)
    third = TAPS[1] * (f + h) + TAPS[2] * (e + i) + TAPS[3] * (d + j) + TAPS[4] * (c + k)
    fourth = TAPS[1] * (g + i) + TAPS[2] * (f + j) + TAPS[3] * (e + k) + TAPS[4] * (d + m)
    return tl.reshape(tl.join(tl.join(first, third), tl.join(second, fourth)), (Y, X))


@triton.jit
def beside_points(place, inside, x, width, EDGE: tl.constexpr):
    """What neighbours in x give to points."""
    total = 0.0
    for away in tl.static_range(1, 5):
        left = look(place - away, inside & (x >= away), EDGE)
        total += TAPS[away] * (left + look(place + away, inside & (x + away < width), EDGE))
    return total


@triton.jit
def above_and_below(
    laplacians, points, now, at, x, y, width, height, EDGE: tl.constexpr, ROWS: tl.constexpr
):  # fmt: skip
    """The sums with what neighbours in y give, some of which are points themselves."""
    for row in tl.static_range(-4, ROWS + 4):
        if row < 0 or row >= ROWS:
            known = (x < width) & (y + row >= 0) & (y + row < height)
            value = look(now + row * width + at, known, EDGE)
        else:
            value = points[row]
        totals = ()
        for to in tl.static_range(ROWS):
            if row == to or row - to > 4 or to - row > 4:
                totals += (laplacians[to],)
            else:
                totals += (laplacians[to] + TAPS[row - to if row > to else to - row] * value,)
        laplacians = totals
    return laplacians


@triton.jit
def first_layers(
    now, at, inside, begin, depth, layer, width, AHEAD: tl.constexpr, ROWS: tl.constexpr
):  # fmt: skip
    """The rows of the layers 4 before the first to 4 behind it, and of those asked for early."""
    held = ()
    for z in tl.static_range(-4, 4 + AHEAD):
        exists = (begin + z >= 0) & (begin + z < depth)
        for row in tl.static_range(ROWS):
            line = now + z * layer + row * width
            held += (tl.load(line + at, mask=inside[row] & exists, other=0.0),)
    return held


@triton.jit
def walk_on(
    now, before, speed, after, depth, height, width, x, y, begin, end, EDGE: tl.constexpr,
    AHEAD: tl.constexpr, UNIT: tl.constexpr, ROWS: tl.constexpr, Y: tl.constexpr, X: tl.constexpr,
):  # fmt: skip
    layer = height * width  # at most 2^22
    at = y * width + x
    first = begin.to(tl.int64) * layer
    now += first
    before += first
    speed += first
    after += first
    inside = ()
    for row in tl.static_range(ROWS):
        inside += ((x < width) & (y + row < height) if EDGE else x >= 0,)
    held = first_layers(now, at, inside, begin, depth, layer, width, AHEAD, ROWS)
    pasts, rates = (), ()
    for z in tl.static_range(AHEAD):
        for row in tl.static_range(ROWS):
            wanted = inside[row] & (begin + z < end)
            line = z * layer + row * width
            pasts += (once(before + line + at, wanted, UNIT),)
            rates += (once(speed + line + at, wanted, UNIT),)
    for z in range(begin, end):
        for row in tl.static_range(ROWS):
            wanted = inside[row] & (z + AHEAD < end)
            line = AHEAD * layer + row * width
            far = tl.load(
                now + 4 * layer + line + at, mask=wanted & (z + 4 + AHEAD < depth), other=0.0
            )
            held += (far,)
            pasts += (once(before + line + at, wanted, UNIT),)
            rates += (once(speed + line + at, wanted, UNIT),)
        laplacians = ()
        for row in tl.static_range(ROWS):
            own = held[4 * ROWS + row]
            place = now + row * width + at
            if UNIT == 4:
                total = beside_vectors(place, own, inside[row], x, width, EDGE, Y, X)
            else:
                total = beside_points(place, inside[row], x, width, EDGE)
            total += TAPS[0] * own
            for away in tl.static_range(1, 5):
                total += TAPS[away] * (
                    held[(4 - away) * ROWS + row] + held[(4 + away) * ROWS + row]
                )
            laplacians += (total,)
        points = held[4 * ROWS : 5 * ROWS]
        laplacians = above_and_below(
            laplacians, points, now, at, x, y, width, height, EDGE, ROWS
        )  # fmt: skip
        for row in tl.static_range(ROWS):
            result = 2.0 * points[row] - pasts[row] + rates[row] * laplacians[row]
            give(after + row * width + at, result, inside[row], EDGE, UNIT)
        held, pasts, rates = held[ROWS:], pasts[ROWS:], rates[ROWS:]
        now += layer
        before += layer
        speed += layer
        after += layer


@triton.jit
def one_layer(
    now, before, speed, after, depth, height, width, x, y, z, EDGE: tl.constexpr,
    UNIT: tl.constexpr, ROWS: tl.constexpr, Y: tl.constexpr, X: tl.constexpr,
):  # fmt: skip
    layer = height * width
    at = y * width + x
    first = z.to(tl.int64) * layer
    now += first
    pasts, rates = (), ()  # asked for first, as no neighbour brings them into the cache
    for row in tl.static_range(ROWS):
        wanted = (x < width) & (y + row < height) if EDGE else None
        place = first + row * width + at
        pasts += (once(before + place, wanted, UNIT),)
        rates += (once(speed + place, wanted, UNIT),)
    points, laplacians = (), ()
    for row in tl.static_range(ROWS):
        inside = (x < width) & (y + row < height)
        place = now + row * width + at
        own = look(place, inside, EDGE)
        if UNIT == 4:
            total = beside_vectors(place, own, inside, x, width, EDGE, Y, X)
        else:
            total = beside_points(place, inside, x, width, EDGE)
        total += TAPS[0] * own
        for away in tl.static_range(1, 5):
            value = look(place - away * layer, inside & (z >= away), EDGE)
            value += look(place + away * layer, inside & (z + away < depth), EDGE)
            total += TAPS[away] * value
        points += (own,)
        laplacians += (total,)
    laplacians = above_and_below(
        laplacians, points, now, at, x, y, width, height, EDGE, ROWS
    )  # fmt: skip
    for row in tl.static_range(ROWS):
        inside = (x < width) & (y + row < height)
        result = 2.0 * points[row] - pasts[row] + rates[row] * laplacians[row]
        give(after + first + row * width + at, result, inside, EDGE, UNIT)


@triton.jit
def layer_kernel(
    now, before, speed, after, depth, height, units,
    UNIT: tl.constexpr, ROWS: tl.constexpr, Y: tl.constexpr, X: tl.constexpr,
):  # fmt: skip
    width = units * UNIT
    left, top, z = tl.program_id(0) * X, tl.program_id(1) * (Y * ROWS), tl.program_id(2)
    x = left + tl.arange(0, X)[None, :]
    y = top + tl.arange(0, Y)[:, None] * ROWS
    within = (left >= 4) & (left + X + 4 <= width) & (top >= 4) & (top + Y * ROWS + 4 <= height)
    if within & (z >= 4) & (z + 4 < depth):
        one_layer(
            now, before, speed, after, depth, height, width, x, y, z,
            EDGE=False, UNIT=UNIT, ROWS=ROWS, Y=Y, X=X,
        )  # fmt: skip
    else:
        one_layer(
            now, before, speed, after, depth, height, width, x, y, z,
            EDGE=True, UNIT=UNIT, ROWS=ROWS, Y=Y, X=X,
        )  # fmt: skip


@triton.jit
def wave_kernel(
    now, before, speed, after, depth, height, units, walk,
    AHEAD: tl.constexpr, UNIT: tl.constexpr, ROWS: tl.constexpr, Y: tl.constexpr, X: tl.constexpr,
):  # fmt: skip
    width = units * UNIT
    left, top = tl.program_id(0) * X, tl.program_id(1) * (Y * ROWS)
    x = left + tl.arange(0, X)[None, :]
    y = top + tl.arange(0, Y)[:, None] * ROWS
    begin = tl.program_id(2) * walk
    end = tl.minimum(begin + walk, depth)
    if (left >= 4) & (left + X + 4 <= width) & (top >= 4) & (top + Y * ROWS + 4 <= height):
        walk_on(
            now, before, speed, after, depth, height, width, x, y, begin, end,
            EDGE=False, AHEAD=AHEAD, UNIT=UNIT, ROWS=ROWS, Y=Y, X=X,
        )  # fmt: skip
    else:
        walk_on(
            now, before, speed, after, depth, height, width, x, y, begin, end,
            EDGE=True, AHEAD=AHEAD, UNIT=UNIT, ROWS=ROWS, Y=Y, X=X,
        )  # fmt: skip


def wave_3d(now, before, speed, after, *, depth, height, width):
    """Write after [depth, height, width]."""
    aligned = all(tensor.data_ptr() % 16 == 0 for tensor in (now, before, speed, after))
    if width % 4 == 0 and aligned:
        unit, ahead, rows, tile_y, tile_x = 4, 2, 1, 16, 64
    else:
        unit, ahead, rows, tile_y, tile_x = 1, 1, 2, 8, 32
    across, down = triton.cdiv(width, tile_x), triton.cdiv(height, tile_y * rows)
    # Each walk loads 8 layers of its neighbours, so walks are long where tiles are many.
    walk = min(depth * across * down // PROGRAMS_WANTED, LONGEST_WALK)
    if walk < SHORTEST_WALK:
        tile_y, tile_x = 4 // rows, 128
        layer_kernel[(triton.cdiv(width, tile_x), triton.cdiv(height, 4), depth)](
            now, before, speed, after, depth, height, width // unit,
            UNIT=unit, ROWS=rows, Y=tile_y, X=tile_x, num_warps=4,
        )  # fmt: skip
        return
    # Walks of one length, or nearly.
    walk = triton.cdiv(depth, triton.cdiv(depth, walk))
    wave_kernel[(across, down, triton.cdiv(depth, walk))](
        now, before, speed, after, depth, height, width // unit, walk,
        AHEAD=ahead, UNIT=unit, ROWS=rows, Y=tile_y, X=tile_x, num_warps=8,
    )  # fmt: skip
