"""Oracle of the tree_attention task: context and tree side by side, with one mask for both."""

import torch


def inputs(config, generator):
    """Draw normal q, k and v with a temperature a head, contexts of any length, and trees.

    A node hangs on one of the nodes before it, the latest ones more often, and then the nodes of a
    tree are numbered anew. Nodes' keys resemble each other, since tokens that compete follow the
    same text. One context takes nearly all the room that there is.
    """
    batch, heads, group = config["batch"], config["kv_heads"], config["group"]
    seq, nodes, dim, dtype = (config[name] for name in ("seq", "nodes", "dim", "dtype"))
    temperature = 0.3 + 2.0 * torch.rand(batch, heads * group, 1, 1, generator=generator)
    q = temperature * torch.randn(batch, heads * group, nodes, dim, generator=generator)
    k = torch.randn(batch, heads, seq, dim, generator=generator)
    v = 0.5 + torch.randn(batch, heads, seq, dim, generator=generator)
    common = torch.randn(batch, heads, 1, dim, generator=generator)
    k_tree = 0.5 * common + torch.randn(batch, heads, nodes, dim, generator=generator)
    v_tree = 2.0 * torch.randn(batch, heads, nodes, dim, generator=generator) - 0.5
    length = torch.randint((seq + 3) // 4, seq + 1, (batch,), generator=generator)
    length = torch.where(torch.rand(batch, generator=generator) < 0.2, 1 + length // 16, length)
    nearly = seq - torch.randint(1 + seq // 8, (1,), generator=generator)
    length[torch.randint(batch, (1,), generator=generator)] = nearly
    parent = torch.rand(batch, nodes, generator=generator) ** 0.7 * torch.arange(nodes)
    seen = torch.zeros(batch, nodes, nodes, dtype=torch.int8)
    every = torch.arange(batch)
    for node in range(nodes):
        if node > 0:
            seen[:, node] = seen[every, parent[:, node].long()]
        seen[:, node, node] = 1
    turn = torch.rand(batch, nodes, generator=generator).argsort(dim=-1)
    seen = seen.gather(1, turn[:, :, None].expand(-1, -1, nodes))
    seen = seen.gather(2, turn[:, None].expand(-1, nodes, -1)).contiguous()
    return {
        "q": q.to(dtype),
        "k": k.to(dtype),
        "v": v.to(dtype),
        "k_tree": k_tree.to(dtype),
        "v_tree": v_tree.to(dtype),
        "length": length.to(torch.int32),
        "seen": seen,
    }


def reference(q, k, v, k_tree, v_tree, length, seen, group, nodes, seq, dim, **_):
    """Return y [batch, kv_heads * group, nodes, dim]."""
    y = torch.empty_like(q)
    known = torch.arange(seq, device=q.device) < length[:, None]
    mask = torch.cat((known[:, None].expand(-1, nodes, -1), seen != 0), dim=-1)
    for sequence in range(q.shape[0]):
        for head in range(q.shape[1]):
            own = sequence, head // group
            keys, values = torch.cat((k[own], k_tree[own])), torch.cat((v[own], v_tree[own]))
            scores = q[sequence, head] @ keys.T / dim**0.5
            weights = torch.softmax(scores.masked_fill(~mask[sequence], -torch.inf), dim=-1)
            y[sequence, head] = weights @ values
    return {"y": y}
