"""Any model of the ``transformers`` library, with random weights: CONFIG is its ``config.json``.

For ``kabuild model``, where ``transformers`` is installed beside kabuild: ``build`` returns the
model, ``inputs`` one call's arguments: tokens for a model of text, pixels for one of images. A
model of both, or of sound, needs other inputs; an encoder with a decoder is given its tokens twice.
"""

from __future__ import annotations

from typing import Any

import torch
import transformers
from torch import Generator, Tensor, nn

CONFIG: dict[str, Any] = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "vocab_size": 384,
    "hidden_size": 96,
    "intermediate_size": 256,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "num_key_value_heads": 1,
    "head_dim": 32,
    "max_position_embeddings": 48,
}
TOKENS = 48
BATCH = 2
DTYPE = torch.float32

ARCHITECTURE: str = CONFIG["architectures"][0]
if "LM" in ARCHITECTURE:  # a language model: kabuild model verify compares its predictions
    LOGITS = 0


class Model(nn.Module):
    """What comes out of the model first: logits, else hidden states."""

    def __init__(self) -> None:
        super().__init__()
        self.config = transformers.AutoConfig.for_model(**CONFIG)
        self.model = getattr(transformers, ARCHITECTURE)(self.config)

    def forward(self, given: Tensor) -> Tensor:
        """Return the first result for tokens [batch, tokens] or pixels [batch, channels, h, w]."""
        if given.is_floating_point():
            told = {"pixel_values": given}
        else:
            told = {"input_ids": given}
            if self.config.is_encoder_decoder:
                told["decoder_input_ids"] = given
            if hasattr(self.config, "use_cache"):
                told["use_cache"] = False
        first: Tensor = self.model(**told, return_dict=False)[0]
        return first


def build() -> nn.Module:
    """Return the model."""
    torch.manual_seed(0)
    return Model().to(DTYPE).eval()


def inputs(generator: Generator) -> tuple[Tensor, ...]:
    """Return random tokens, or random pixels for a config without a vocabulary."""
    if "vocab_size" in CONFIG:
        return (torch.randint(CONFIG["vocab_size"], (BATCH, TOKENS), generator=generator),)
    channels, size = CONFIG.get("num_channels", 3), CONFIG["image_size"]
    return (torch.randn(BATCH, channels, size, size, generator=generator).to(DTYPE),)
