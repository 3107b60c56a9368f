"""Oracle of the paged_attention task: the tokens of each sequence gathered, and a softmax."""

import torch


def inputs(config, generator):
    """Draw queries with a temperature a head, caches, tables without order, and lengths.

    Sequences share pages, as those with the same beginning do, and one nearly fills its table.
    What no token of a sequence needs in its table is -1.
    """
    batch, kv_heads, group = config["batch"], config["kv_heads"], config["group"]
    table_pages, page_size = config["table_pages"], config["page_size"]
    pages, dim, dtype = config["pages"], config["dim"], config["dtype"]
    temperature = 0.3 + 2.0 * torch.rand(batch, kv_heads * group, 1, generator=generator)
    q = temperature * torch.randn(batch, kv_heads * group, dim, generator=generator)
    k_cache = torch.randn(pages, page_size, kv_heads, dim, generator=generator)
    v_cache = 0.5 + torch.randn(pages, page_size, kv_heads, dim, generator=generator)
    length = torch.randint(1, table_pages * page_size + 1, (batch,), generator=generator)
    room = table_pages * page_size
    nearly = room - torch.randint(1 + room // 8, (1,), generator=generator)
    length[torch.randint(batch, (1,), generator=generator)] = nearly
    table = torch.randint(0, pages, (batch, table_pages), generator=generator)
    needed = torch.arange(table_pages) * page_size < length[:, None]
    return {
        "q": q.to(dtype),
        "k_cache": k_cache.to(dtype),
        "v_cache": v_cache.to(dtype),
        "table": torch.where(needed, table, -1).to(torch.int32),
        "length": length.to(torch.int32),
    }


def reference(q, k_cache, v_cache, table, length, group, dim, **_):
    """Return y [batch, kv_heads * group, dim]."""
    y = torch.empty_like(q)
    for sequence, tokens in enumerate(length.tolist()):
        pages = table[sequence].long().clamp_min(0)
        keys, values = (
            cache[pages].flatten(0, 1)[:tokens].repeat_interleave(group, dim=1)
            for cache in (k_cache, v_cache)
        )
        scores = torch.einsum("hd,thd->ht", q[sequence], keys) / dim**0.5
        y[sequence] = torch.einsum("ht,thd->hd", torch.softmax(scores, dim=-1), values)
    return {"y": y}
