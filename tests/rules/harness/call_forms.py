"""Small tasks with a call, each with a right solution, and wrong ones with their reasons.

A form is the attributes of a task, with its files in the place of their names.
"""

from __future__ import annotations

LINEAR = {
    "call": "y = ModelNew(cols, out)(x)",
    "inputs": {"x": "T[rows, cols]"},
    "outputs": {"y": "T[rows, out]"},
    "state": {"fc.weight": "T[out, cols]", "fc.bias": "T[out]"},
    "dims": {"rows": "1..64", "cols": "1..64", "out": "1..64"},
    "configs": [{"rows": 8, "cols": 16, "out": 4}],
    "reference": """
        def inputs(config, generator):
            return {"x": torch.randn(config["rows"], config["cols"], generator=generator)}

        def state(config, generator):
            shape = config["out"], config["cols"]
            return {
                "fc.weight": torch.randn(shape, generator=generator) / 4,
                "fc.bias": torch.randn(shape[:1], generator=generator),
            }

        def reference(x, state, **_):
            return {"y": x @ state["fc.weight"].T + state["fc.bias"]}
        """,
    "right": """
        class Model(torch.nn.Module):
            def __init__(self, cols, out):
                super().__init__()
                self.fc = torch.nn.Linear(cols, out)

            def forward(self, x):
                return self.fc(x)
        """,
}
"""A module with weights; the class has the baseline's name in a candidate's file, too."""

LOSS = {
    "call": "loss = loss(logits, target, weight, reduction=reduction, smooth=None)",
    "inputs": {"logits": "T[rows, cols]", "target": "i64[rows]", "weight": "T[cols]?"},
    "outputs": {"loss": "T[]"},
    "scalars": {"reduction": "mean"},
    "dims": {"rows": "1..64", "cols": "2..64"},
    "configs": [{"rows": 8, "cols": 16}, {"rows": 8, "cols": 16, "weight": False}],
    "reference": """
        def inputs(config, generator):
            rows, cols = config["rows"], config["cols"]
            weight = torch.rand(cols, generator=generator) + 0.1
            return {
                "logits": torch.randn(rows, cols, generator=generator),
                "target": torch.randint(cols, (rows,), generator=generator),
                "weight": weight if config["weight"] else None,
            }

        def reference(logits, target, weight, reduction, **_):
            made = torch.nn.functional.cross_entropy(logits, target, weight, reduction=reduction)
            return {"loss": made}
        """,
    "right": """
        def loss(logits, target, weight, *, reduction, smooth):
            assert smooth is None and reduction == "mean"
            chosen = -logits.log_softmax(-1).gather(-1, target[:, None])[:, 0]
            each = torch.ones_like(chosen) if weight is None else weight[target]
            return (chosen * each).sum() / each.sum()
        """,
}
"""A result without axes, an optional tensor, a text, and ``None``."""

NORM = {
    "call": "y, _ = norm(x, mean, var, 0.1)",
    "inputs": {"x": "T[rows, cols]", "mean": "T[cols]", "var": "T[cols]"},
    "outputs": {"y": "T[rows, cols]"},
    "updates": ["mean", "var"],
    "dims": {"rows": "2..64", "cols": "1..64"},
    "configs": [{"rows": 8, "cols": 16}],
    "reference": """
        def inputs(config, generator):
            cols = config["cols"]
            return {
                "x": torch.randn(config["rows"], cols, generator=generator),
                "mean": torch.randn(cols, generator=generator),
                "var": torch.rand(cols, generator=generator) + 0.5,
            }

        def reference(x, mean, var, **_):
            y = (x - x.mean(0)) / (x.var(0, correction=0) + 1.0).sqrt()
            return {"y": y, "mean": 0.9 * mean + 0.1 * x.mean(0), "var": 0.9 * var + 0.1 * x.var(0)}
        """,
    "right": """
        def norm(x, mean, var, momentum):
            mean.mul_(1 - momentum).add_(momentum * x.mean(0))
            var.mul_(1 - momentum).add_(momentum * x.var(0))
            return (x - x.mean(0)) / (x.var(0, correction=0) + 1.0).sqrt(), "dropped"
        """,
}
"""Arguments that a call changes, and a result that nobody looks at."""

PARTS = {
    "call": "total, parts = split(xs, (rows, [cols]), {'scale': scale, 'like': f32})",
    "inputs": {"xs": "T[rows, cols] * count"},
    "outputs": {"total": "T[rows, cols]", "parts": "T[cols] * count"},
    "scalars": {"scale": 2.0},
    "layout": {"total": "dense"},
    "dims": {"rows": "1..32", "cols": "1..32", "count": "1..4"},
    "where": ["rows % 2 == 0"],
    "configs": [{"rows": 8, "cols": 5, "count": 3}],
    "reference": """
        def inputs(config, generator):
            shape = config["rows"], config["cols"]
            return {"xs": [torch.randn(shape, generator=generator) for _ in range(config["count"])]}

        def reference(xs, scale, **_):
            return {"total": scale * sum(xs), "parts": [x.sum(0) for x in xs]}
        """,
    "right": """
        def split(xs, sizes, how):
            assert type(xs) is list and sizes == (xs[0].shape[0], [xs[0].shape[1]])
            assert how["like"] is torch.float32
            return how["scale"] * sum(xs).T.contiguous().T, [x.sum(0) for x in xs]
        """,
}
"""Lists in and out, containers, a dtype, a condition on the dims, axes in any order."""

INTO = {
    "call": "add[grid(n)](x, y, out, n, BLOCK=16)",
    "inputs": {"x": "T[n]", "y": "T[n]"},
    "outputs": {"out": "T[n]"},
    "dims": {"n": "1..64"},
    "configs": [{"n": 40}],
    "adapter": """
        def grid(n):
            return (-(-n // 16),)
        """,
    "reference": """
        def inputs(config, generator):
            return {name: torch.randn(config["n"], generator=generator) for name in "xy"}

        def reference(x, y, **_):
            return {"out": x + y}
        """,
    "right": """
        import triton
        import triton.language as tl

        @triton.jit
        def add(x, y, out, n, BLOCK: tl.constexpr):
            at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            held = at < n
            tl.store(out + at, tl.load(x + at, mask=held) + tl.load(y + at, mask=held), mask=held)
        """,
}
"""A launch, into an output that is passed."""

STRIDED = {
    "call": "dx = backward(dy, x, q)",
    "inputs": {"dy": "T[rows, cols]", "x": "T[rows, cols]", "q": "T[rows, cols]"},
    "outputs": {"dx": "T[rows, cols]"},
    "layout": {"dy": "expanded", "q": "[3 * cols, 1]"},
    "dims": {"rows": "1..32", "cols": "1..32"},
    "configs": [{"rows": 8, "cols": 16}],
    "reference": """
        def inputs(config, generator):
            shape = config["rows"], config["cols"]
            return {name: torch.randn(shape, generator=generator) for name in ("dy", "x", "q")}

        def reference(dy, x, q, **_):
            return {"dx": 2 * x * dy + q}
        """,
    "right": """
        def backward(dy, x, q):
            assert set(dy.stride()) == {0} and q.stride() == (3 * q.shape[1], 1)
            return 2 * x * dy + q
        """,
}
EIGHTS = {
    "call": "y, less = scaled(x, codes, z, f8e4m3)",
    "inputs": {"x": "f8e5m2[n]", "codes": "f4x2[n]", "z": "c64[n]"},
    "outputs": {"y": "f8e4m3[n]", "less": "i16[n]"},
    "dims": {"n": "1..64"},
    "configs": [{"n": 40}],
    "reference": """
        def inputs(config, generator):
            n = config["n"]
            x = torch.randn(n, generator=generator).to(torch.float8_e5m2)
            codes = torch.randint(256, (n,), generator=generator).to(torch.uint8)
            z = torch.view_as_complex(torch.randn(n, 2, generator=generator))
            return {"x": x, "codes": codes, "z": z}

        def reference(x, codes, z, **_):
            return {"y": x + z.real, "less": codes.to(torch.int16) - 7}
        """,
    "right": """
        def scaled(x, codes, z, dtype):
            assert codes.dtype is torch.float4_e2m1fn_x2
            y = (x.double() + z.real).to(dtype)
            return y, codes.view(torch.uint8).to(torch.int16) - 7
        """,
}
"""Elements of eight bits and of four, complex numbers, short integers."""

BYTES = {
    "call": "y = flipped(x)",
    "inputs": {"x": "u8[rows, cols]"},
    "outputs": {"y": "u8[rows, cols]"},
    "dims": {"rows": "1..64", "cols": "1..64"},
    "configs": [{"rows": 8, "cols": 16}],
    "reference": """
        def inputs(config, generator):
            shape = config["rows"], config["cols"]
            return {"x": torch.randint(256, shape, generator=generator).to(torch.uint8)}

        def reference(x, **_):
            return {"y": 255 - x}
        """,
    "right": """
        def flipped(x):
            return ~x
        """,
}
"""A returned result of bytes, which is not one of pairs of 4-bit floats."""

FORMS = {
    "bytes": BYTES,
    "linear": LINEAR,
    "loss": LOSS,
    "norm": NORM,
    "parts": PARTS,
    "into": INTO,
    "strided": STRIDED,
    "eights": EIGHTS,
}

WRONG = {
    ("bytes", "WRONG_DTYPE"): """
        def flipped(x):
            return (~x).view(torch.int8)
        """,
    ("linear", "STATE_MISMATCH"): """
        class ModelNew(torch.nn.Module):
            def __init__(self, cols, out):
                super().__init__()
                self.linear = torch.nn.Linear(cols, out)
        """,
    ("linear", "WRONG_RESULT", "keeps the weights of an earlier round"): """
        class ModelNew(Model):
            kept = {}

            def forward(self, x):
                weight, bias = self.kept.setdefault(x.shape[1], (self.fc.weight, self.fc.bias))
                return torch.nn.functional.linear(x, weight, bias)
        """,
    ("linear", "WRONG_RESULT", "keeps its first result"): """
        class ModelNew(Model):
            kept = {}

            def forward(self, x):
                return self.kept.setdefault(x.shape, super().forward(x))
        """,
    ("linear", "WRONG_DTYPE"): """
        class ModelNew(Model):
            def forward(self, x):
                return super().forward(x).double()
        """,
    ("linear", "WRONG_LAYOUT"): """
        class ModelNew(Model):
            def forward(self, x):
                return super().forward(x).T.contiguous().T
        """,
    ("linear", "WRONG_TYPE"): """
        class Lazy(torch.Tensor):
            pass

        class ModelNew(Model):
            def forward(self, x):
                return super().forward(x).as_subclass(Lazy)
        """,
    ("linear", "INPUT_MUTATED"): """
        class ModelNew(Model):
            def forward(self, x):
                y = super().forward(x)
                x.zero_()
                return y
        """,
    ("linear", "OUTPUT_ALIASED"): """
        class ModelNew(Model):
            def forward(self, x):
                return x.view(-1)[:1].expand(x.shape[0], self.fc.out_features)
        """,
    ("linear", "OUT_OF_BOUNDS", "names memory that is not its own"): """
        class Far:
            def __init__(self, tensor):
                self.tensor = tensor

        class ModelNew(Model):
            def forward(self, x):
                import sys
                sys.modules["pyrunner_call.returned"].Returned._checked = lambda *_: 1 << 46
                return super().forward(x)
        """,
    ("linear", "WRONG_RESULT", "works once the clock has stopped"): """
        import threading, time

        class ModelNew(Model):
            def forward(self, x):
                y = torch.zeros(x.shape[0], self.fc.out_features)
                def work():
                    time.sleep(0.3)
                    with torch.no_grad():
                        y.copy_(self.fc(x))
                threading.Thread(target=work).start()
                return y
        """,
    ("loss", "WRONG_SHAPE"): """
        right = loss

        def loss(*args, **how):
            return right(*args, **how).reshape(1)
        """,
    ("loss", "WRONG_RESULT", "is wrong only where the tensor is None"): """
        right = loss

        def loss(logits, target, weight, **how):
            return right(logits, target, weight, **how) * (1 if weight is not None else 1.5)
        """,
    ("norm", "WRONG_RESULT", "changes nothing"): """
        def norm(x, mean, var, momentum):
            return (x - x.mean(0)) / (x.var(0, correction=0) + 1.0).sqrt(), None
        """,
    ("parts", "WRONG_SHAPE"): """
        right = split

        def split(*args):
            total, parts = right(*args)
            return total, parts[:-1]
        """,
    ("eights", "WRONG_RESULT", "loses the sign"): """
        right = scaled

        def scaled(*args):
            y, n = right(*args)
            return y.double().abs().to(y.dtype), n
        """,
    ("into", "INCOMPLETE_OUTPUT"): """
        class add:
            def __class_getitem__(cls, grid):
                return lambda x, y, out, n, BLOCK: None
        """,
}
