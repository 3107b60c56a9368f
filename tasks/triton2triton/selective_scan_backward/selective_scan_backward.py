"""Gradients of a selective scan: states at the start of chunks, then chunks from the last on.

For each chunk one kernel computes its states anew, and another walks back over them.
"""

import torch
import triton
import triton.language as tl

CHUNK = 32
CHANNELS = 32


@triton.jit
def step_of(dt, bias):
    """softplus(dt + bias), and dt + bias."""
    u = dt.to(tl.float32) + bias
    small = tl.exp(-tl.abs(u))
    series = small * (1.0 - small * (0.5 - small / 3.0))  # where 1 + small would round small away
    return tl.maximum(u, 0.0) + tl.where(small < 0.01, series, tl.log(1.0 + small)), u


@triton.jit
def forward_kernel(
    x, dt, rate, b, bias, starts, history, begin, count, seq, channels, states, chunks, chunk,
    CHUNK: tl.constexpr, BLOCK_C: tl.constexpr, BLOCK_S: tl.constexpr, KEEP: tl.constexpr,
):  # fmt: skip
    """States from position begin on: at the start of each chunk, or of each position with KEEP."""
    sequence = tl.program_id(0).to(tl.int64)
    channel = tl.program_id(1) * BLOCK_C + tl.arange(0, BLOCK_C)
    state = tl.arange(0, BLOCK_S)
    known = channel < channels
    inside = known[:, None] & (state < states)[None, :]
    own = channel[:, None] * states + state[None, :]
    size = channels.to(tl.int64) * states
    speed = tl.abs(tl.load(rate + own, mask=inside, other=0.0))
    shift = tl.load(bias + channel, mask=known, other=0.0)
    h = tl.zeros((BLOCK_C, BLOCK_S), dtype=tl.float32)
    if KEEP:
        h = tl.load(starts + (sequence * chunks + chunk) * size + own, mask=inside, other=0.0)
    for t in range(count):
        line = sequence * seq + begin + t
        if KEEP:
            tl.store(history + (sequence * CHUNK + t) * size + own, h, mask=inside)
        elif t % CHUNK == 0:
            tl.store(starts + (sequence * chunks + t // CHUNK) * size + own, h, mask=inside)
        step, _ = step_of(tl.load(dt + line * channels + channel, mask=known, other=0.0), shift)
        value = tl.load(x + line * channels + channel, mask=known, other=0.0).to(tl.float32)
        key = tl.load(b + line * states + state, mask=state < states, other=0.0).to(tl.float32)
        h = tl.exp(-step[:, None] * speed) * h + (step * value)[:, None] * key[None, :]


@triton.jit
def backward_kernel(
    x, dt, rate, b, c, bias, d, dy, history, slopes, dx, ddt, part_b, part_c, sum_rate, sum_bias,
    sum_d, begin, count, seq, channels, states, CHUNK: tl.constexpr, BLOCK_C: tl.constexpr,
    BLOCK_S: tl.constexpr,
):  # fmt: skip
    """One chunk of some channels, from its last position to its first."""
    sequence = tl.program_id(0).to(tl.int64)
    group = tl.program_id(1)
    channel = group * BLOCK_C + tl.arange(0, BLOCK_C)
    state = tl.arange(0, BLOCK_S)
    known = channel < channels
    inside = known[:, None] & (state < states)[None, :]
    own = channel[:, None] * states + state[None, :]
    size = channels.to(tl.int64) * states
    speed = tl.abs(tl.load(rate + own, mask=inside, other=0.0))
    shift = tl.load(bias + channel, mask=known, other=0.0)
    through = tl.load(d + channel, mask=known, other=0.0)
    slope = tl.load(slopes + sequence * size + own, mask=inside, other=0.0)
    drate = tl.load(sum_rate + sequence * size + own, mask=inside, other=0.0)
    dbias = tl.load(sum_bias + sequence * channels + channel, mask=known, other=0.0)
    dd = tl.load(sum_d + sequence * channels + channel, mask=known, other=0.0)
    for back in range(count):
        t = count - 1 - back
        line = sequence * seq + begin + t
        place = line * channels + channel
        step, u = step_of(tl.load(dt + place, mask=known, other=0.0), shift)
        value = tl.load(x + place, mask=known, other=0.0).to(tl.float32)
        gradient = tl.load(dy + place, mask=known, other=0.0).to(tl.float32)
        there = state < states
        key = tl.load(b + line * states + state, mask=there, other=0.0).to(tl.float32)
        query = tl.load(c + line * states + state, mask=there, other=0.0).to(tl.float32)
        before = tl.load(history + (sequence * CHUNK + t) * size + own, mask=inside, other=0.0)
        kept = tl.exp(-step[:, None] * speed)
        fed = (step * value)[:, None]
        after = kept * before + fed * key[None, :]
        slope += gradient[:, None] * query[None, :]
        part = ((sequence * tl.num_programs(1) + group) * seq + begin + t) * states + state
        tl.store(part_c + part, tl.sum(gradient[:, None] * after, axis=0), mask=there)
        tl.store(part_b + part, tl.sum(slope * fed, axis=0), mask=there)
        along = tl.sum(slope * key[None, :], axis=1)
        lost = slope * kept * before
        rise = value * along - tl.sum(lost * speed, axis=1)
        rise *= tl.sigmoid(u)
        tl.store(dx + place, through * gradient + step * along, mask=known)
        tl.store(ddt + place, rise, mask=known)
        drate -= lost * step[:, None]
        dbias += rise
        dd += gradient * value
        slope *= kept
    tl.store(slopes + sequence * size + own, slope, mask=inside)
    tl.store(sum_rate + sequence * size + own, drate, mask=inside)
    tl.store(sum_bias + sequence * channels + channel, dbias, mask=known)
    tl.store(sum_d + sequence * channels + channel, dd, mask=known)


@triton.jit
def sum_kernel(parts, out, count, size, BLOCK: tl.constexpr):
    """out [outer, size]: the sums over the middle of parts [outer, count, size]."""
    outer = tl.program_id(0).to(tl.int64)
    place = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for part in range(count):
        total += tl.load(parts + (outer * count + part) * size + place, mask=place < size)
    tl.store(out + outer * size + place, total, mask=place < size)


def sum_parts(parts, out, outer, count, size):
    """Write the sums over the middle of parts [outer, count, size] into out."""
    sum_kernel[(outer, triton.cdiv(size, 1024))](parts, out, count, size, BLOCK=1024)


def selective_scan_backward(
    x, dt, rate, b, c, bias, d, dy, dx, ddt, db, dc, drate, dbias, dd,
    *, batch, seq, channels, states,
):  # fmt: skip
    """Write the gradients of all inputs of the scan."""

    def zeros(*shape):
        return torch.zeros(shape, dtype=torch.float32, device=x.device)

    chunks, groups = triton.cdiv(seq, CHUNK), triton.cdiv(channels, CHANNELS)
    starts, history = zeros(batch, chunks, channels, states), zeros(batch, CHUNK, channels, states)
    slopes, sum_rate = zeros(batch, channels, states), zeros(batch, channels, states)
    sum_bias, sum_d = zeros(batch, channels), zeros(batch, channels)
    part_b, part_c = zeros(batch, groups, seq, states), zeros(batch, groups, seq, states)
    blocks = {"CHUNK": CHUNK, "BLOCK_C": CHANNELS, "BLOCK_S": triton.next_power_of_2(states)}
    shared = x, dt, rate, b, bias, starts, history
    grid = batch, groups
    forward_kernel[grid](*shared, 0, seq, seq, channels, states, chunks, 0, KEEP=False, **blocks)
    for chunk in reversed(range(chunks)):
        begin = chunk * CHUNK
        count = min(CHUNK, seq - begin)
        forward_kernel[grid](
            *shared, begin, count, seq, channels, states, chunks, chunk, KEEP=True, **blocks
        )
        backward_kernel[grid](
            x, dt, rate, b, c, bias, d, dy, history, slopes, dx, ddt, part_b, part_c,
            sum_rate, sum_bias, sum_d, begin, count, seq, channels, states, **blocks,
        )  # fmt: skip
    sum_parts(part_b, db, batch, groups, seq * states)
    sum_parts(part_c, dc, batch, groups, seq * states)
    sum_parts(sum_rate, drate, 1, batch, channels * states)
    sum_parts(sum_bias, dbias, 1, batch, channels)
    sum_parts(sum_d, dd, 1, batch, channels)
