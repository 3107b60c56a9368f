"""Oracle of the paged_kv_gather task: whole caches dequantised, indexed, and keys as complex."""

import torch


def inputs(config, generator):
    """Draw caches of quantised keys and values, tables without order, and lengths.

    Sequences share pages, as those with the same beginning do, and the last one fills its table.
    What no token of a sequence needs in its table is -1. Keys' scales differ more than values'.
    Angles are those of positions from 0, by Llama 3's frequencies; each frequency is scaled a
    little, so that the tables differ between draws.
    """
    batch, table_pages, page_size = (config[k] for k in ("batch", "table_pages", "page_size"))
    pages, heads, half = config["pages"], config["heads"], config["half"]
    shape = pages, page_size, heads

    def quantised():
        drawn = 40.0 * torch.randn(*shape, 2 * half, generator=generator)
        return drawn.round().clamp(-127, 127).to(torch.int8)

    length = torch.randint(1, table_pages * page_size + 1, (batch,), generator=generator)
    length[-1] = table_pages * page_size
    table = torch.randint(0, pages, (batch, table_pages), generator=generator)
    needed = torch.arange(table_pages) * page_size < length[:, None]
    position = torch.arange(table_pages * page_size, dtype=torch.float64)
    turn = 0.9 + 0.2 * torch.rand(half, generator=generator, dtype=torch.float64)
    frequency = turn * 5e5 ** (-torch.arange(half, dtype=torch.float64) / half)
    angle = position[:, None] * frequency
    return {
        "k_cache": quantised(),
        "v_cache": quantised(),
        "k_scale": 0.01 + 0.1 * torch.rand(shape, generator=generator),
        "v_scale": 0.01 + 0.03 * torch.rand(shape, generator=generator),
        "table": torch.where(needed, table, -1).to(torch.int32),
        "length": length.to(torch.int32),
        "cos": angle.cos().float(),
        "sin": angle.sin().float(),
    }


def reference(k_cache, v_cache, k_scale, v_scale, table, length, cos, sin, half, **_):
    """Return k and v [batch, heads, context, 2 * half]."""
    place = table.long().clamp_min(0)
    context = table.shape[1] * k_cache.shape[1]
    kept = torch.arange(context, device=table.device) < length[:, None]

    def gathered(cache, scale):
        exact = cache.to(scale.dtype) * scale[..., None]
        rows = exact[place].flatten(1, 2) * kept[..., None, None]
        return rows.transpose(1, 2).contiguous()

    key = gathered(k_cache, k_scale)
    turned = torch.complex(key[..., :half], key[..., half:]) * torch.complex(cos, sin)
    k = torch.cat((turned.real, turned.imag), dim=-1)
    return {"k": k, "v": gathered(v_cache, v_scale)}
