"""A mistake that somebody could make in each given kernel, which the correctness gate rejects.

The starter tasks have mistakes of their own, in the tests of their families.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.tasks.declared import Declared


@dataclass(frozen=True)
class Mistake:
    """A text of a kernel, and the wrong one in its place."""

    right: str
    wrong: str

    def made_in(self, kernel: str) -> str:
        """The kernel with the mistake. Raises ValueError if it lacks the right text."""
        if self.right not in kernel:
            raise ValueError(f"no {self.right!r} in the kernel")
        return kernel.replace(self.right, self.wrong)


def mistakes_in(task: Declared) -> tuple[Mistake, ...]:
    """The mistake and the shortcut of a task, those of the two that it has here."""
    name = task.label.removeprefix("//tasks/")
    return tuple(known[name] for known in (MISTAKES, SHORTCUTS) if name in known)


MISTAKES = {
    "hip2hip/add_layernorm": Mistake(
        "squares += (added - mean) * (added - mean);", "squares += added * added - mean * mean;"
    ),
    "hip2hip/token_quant": Mistake(" / 127.0f;", " / 128.0f;"),
    "hip2hip/dequant_int4": Mistake("i / kBytesOfGroup", "i / (2 * kBytesOfGroup)"),
    "hip2hip/gemv_int8": Mistake("sum * scale[out] + to_float(bias[out])", "sum * scale[out]"),
    "hip2hip/split_heads": Mistake("i / (dim * heads) % 3", "i / (dim * heads) % 2"),
    "hip2hip/causal_conv1d": Mistake("time >= back", "time > back"),
    "hip2hip/moe_combine": Mistake("sum += weight", "sum = weight"),
    "hip2hip/clip_grad_norm": Mistake(
        "fminf(1.0f, limit / (norm[0] + 1e-6f))", "limit / (norm[0] + 1e-6f)"
    ),
    "hip2hip/cross_entropy_fused": Mistake("(1.0f + 2.0f * z * lse)", "1.0f"),
    "hip2hip/rmsnorm_backward": Mistake("normal * along", "along"),
    "hip2hip/embedding_bag": Mistake("weight[i] *", ""),
    "hip2hip/selective_scan": Mistake("h[s] = kept * h[s] +", "h[s] ="),
    "hip2hip/wkv": Mistake("first + key - here", "key - here"),
    "hip2hip/dequant_nvfp4": Mistake("ldexpf((float)mantissa, -9)", "0.0f"),
    "hip2hip/hadamard": Mistake("(lane & apart) ? other - own", "(lane & apart) ? own - other"),
    "hip2hip/moe_combine_backward": Mistake("slot[choice]", "choice"),
    "hip2hip/spmm_csr": Mistake("edge < begin[row + 1]", "edge <= begin[row]"),
    "hip2hip/gumbel_sample": Mistake(" / temperature +", " +"),
    "hip2hip/coulomb": Mistake("pull = weight * inverse * inverse", "pull = weight * inverse"),
    "hip2hip/conv_transpose1d": Mistake("value > 0.0f ? value : 0.1f * value", "value"),
    "hip2hip/depthwise_conv2d": Mistake("c >= 0 && c < width", "c >= 0 && c <= width"),
    "hip2hip/moe_permute": Mistake("next += sums[kThreads - 1]", "next += 1"),
    "hip2hip/nms": Mistake("(suppressed[own / 64] >> (own % 64) & 1)", "false"),
    "hip2hip/radix_sort": Mistake("digits[other] == digit", "digits[other] <= digit"),
    "hip2hip/acoustic_wave": Mistake("up + down - 4.0f * here", "up - 3.0f * here"),
    "hip2hip/gat_aggregate": Mistake("0.2f * score", "score"),
    "hip2hip/stft_magnitude": Mistake("a * c - b * s", "a * c + b * s"),
    "hip2hip/roi_align": Mistake("0.5f * (float)down", "0.4f * (float)down"),
    "hip2hip/attention_backward": Mistake(
        "head < (blockIdx.y + 1) * group", "head <= blockIdx.y * group"
    ),
    "hip2hip/attention_prefill": Mistake("total * kept + share", "total + share"),
    "hip2hip/bilateral": Mistake("(float)(reach * reach)", "(float)reach"),
    "hip2hip/equalize": Mistake("(sums[value] - own + step / 2)", "(sums[value] + step / 2)"),
    "hip2hip/gemm_fp8": Mistake("ldexpf((float)mantissa, -9)", "0.0f"),
    "hip2hip/gray_scott": Mistake("row > 0 ? row - 1 : rows - 1", "row > 0 ? row - 1 : 0"),
    "hip2hip/swiglu_mlp": Mistake("opened / (1.0f + expf(-opened)) * value", "opened * value"),
    "hip2hip/token_partition": Mistake("= (int32_t)(first + i)", "= (int32_t)i"),
    "hip2hip/block_sparse_matmul": Mistake("column[block] * kTile", "(block - begin[out]) * kTile"),
    "hip2hip/conv2d_weight_backward": Mistake("col >= 0 && col < width", "true"),
    "hip2hip/reduce_axis": Mistake("fmaxf(largest, fabsf(value))", "fmaxf(largest, value)"),
    "hip2hip/rmsnorm": Mistake("offset + to_float(weight[col])", "to_float(weight[col])"),
    "hip2hip/top_p_sample": Mistake(
        "top_p * block_sum(total, scratch)", "block_sum(total, scratch)"
    ),
    "hip2hip/ctc_loss": Mistake("s % 2 && kind != spelled[s / 2 - 1]", "s % 2"),
    "hip2hip/kmeans_update": Mistake(
        "own > 0 ? sums[i] / (float)own : old[i]", "sums[i] / (float)(own > 0 ? own : 1)"
    ),
    "hip2hip/gemv_mxfp4": Mistake("i / kBytesOfGroup]", "i / (2 * kBytesOfGroup)]"),
    "hip2hip/chamfer": Mistake("(b, a, near_b, m, n)", "(b, a, near_b, m, 1)"),
    "hip2hip/correlation": Mistake("c >= 0 && c < width", "true"),
    "triton2triton/adamw": Mistake("/ c2", ""),
    "triton2triton/add_rmsnorm": Mistake("/ cols + eps", "/ cols"),
    "triton2triton/argmax": Mistake("value > best", "value >= best"),
    "triton2triton/bias_gelu_backward": Mistake(
        "u += tl.load(bias + col, mask=inside, other=0.0).to(tl.float32)", "u += 0.0"
    ),
    "triton2triton/causal_conv1d_backward": Mistake(
        "source = time + (width - 1) - tap", "source = time + tap"
    ),
    "triton2triton/cross_entropy_backward": Mistake(
        "tl.where(kept, tl.load(dloss + row), 0.0)", "tl.load(dloss + row)"
    ),
    "triton2triton/embedding_backward": Mistake("tl.atomic_add(", "tl.store("),
    "triton2triton/group_norm": Mistake("i // pixels", "i // width"),
    "triton2triton/layernorm_backward": Mistake("gradient - average - normal", "gradient - normal"),
    "triton2triton/moe_router": Mistake(
        "tl.min(tl.where(value == largest, lane, BLOCK), axis=0)",
        "tl.max(tl.where(value == largest, lane, 0), axis=0)",
    ),
    "triton2triton/paged_kv_gather": Mistake("(token < end)", "(token <= end)"),
    "triton2triton/qk_norm_rope": Mistake(
        "high * across + low * along", "high * across - low * along"
    ),
    "triton2triton/ragged_mean": Mistake("tl.maximum(end - begin, 1)", "(end - begin)"),
    "triton2triton/rmsnorm_backward": Mistake("scale * along", "along"),
    "triton2triton/rmsnorm_quant": Mistake("/ 127.0\n", "/ 128.0\n"),
    "triton2triton/softmax_backward": Mistake("(gradient - total)", "gradient"),
    "triton2triton/ssd_chunk_cumsum": Mistake("tl.minimum(tl.maximum(step, low), high)", "step"),
    "triton2triton/swiglu_backward": Mistake("1.0 + gate * (1.0 - share)", "1.0 + gate * share"),
    "triton2triton/swiglu_quant": Mistake("/ 127.0\n", "/ 128.0\n"),
    "triton2triton/attention_alibi": Mistake("tl.abs(query[:, None] - key[None, :])", "0.0"),
    "triton2triton/attention_prefill": Mistake(
        "key[None, :] <= query[:, None]", "key[None, :] < query[:, None]"
    ),
    "triton2triton/attention_sinks": Mistake("(back < window)", "(back <= window)"),
    "triton2triton/dropout_add": Mistake(">= p", ">= 2.0 * p"),
    "triton2triton/gated_delta_rule": Mistake("value.to(tl.float32) - known", "value - 0.0"),
    "triton2triton/gemm_w4a16": Mistake("(pair & 15)", "(pair >> 4)"),
    "triton2triton/mla_decode": Mistake(
        'score += tl.dot(q_turned, tl.trans(key), input_precision="ieee")', "score += 0.0"
    ),
    "triton2triton/moe_grouped_gemm": Mistake("(expert * n + column)", "column"),
    "triton2triton/newton_schulz": Mistake("polynomial, gamma, beta", "polynomial, gamma, 0.0"),
    "triton2triton/conv2d_relu": Mistake("(col + right >= 0) & (col + right < width)", "True"),
    "triton2triton/distill_loss": Mistake("temperature * (q - p)", "q - p"),
    "triton2triton/gemm_int8": Mistake("* down[:, None]", ""),
    "triton2triton/group_norm_backward": Mistake("- normal * slope", ""),
    "triton2triton/vector_quantise": Mistake("start + place", "place"),
    "triton2triton/paged_attention": Mistake("known = token < end", "known = token <= end"),
    "triton2triton/speculative_verify": Mistake("going & (tl.load", "(tl.load"),
    "triton2triton/ssd_chunk_state": Mistake("reverse=True) - step", "reverse=True)"),
    "triton2triton/sparse_attention": Mistake("if other >= 0", "if other >= 1"),
    "triton2triton/adam_8bit": Mistake("(tl.sqrt(v / c2) + eps)", "(tl.sqrt(v) + eps)"),
    "triton2triton/batch_norm_train": Mistake("total / (count - 1)", "total / count"),
    "triton2triton/qk_norm_rope_backward": Mistake(
        "back_high = second * across - first", "back_high = second * across + first"
    ),
    "triton2triton/weight_norm_backward": Mistake("gain * inverse * (", "gain * ("),
    "triton2triton/focal_loss": Mistake("2.0 * rest * soft + likely", "2.0 * soft + likely"),
    "triton2triton/gae": Mistake("lam * going * running", "lam * running"),
    "triton2triton/merge_attention": Mistake("largest + tl.log(total)", "tl.log(total)"),
    "triton2triton/adafactor": Mistake(" / tl.load(mean)", ""),
    "triton2triton/batch_norm_backward": Mistake(
        "other=0) > 0, gradient, 0.0", "other=0) > 0, gradient, gradient"
    ),
    "triton2triton/bert_embeddings": Mistake(
        "apart = tl.where(inside, value - centre, 0.0)", "apart = value - centre"
    ),
    "triton2triton/gemm_fp8_block": Mistake("col // 128 * depth", "tl.program_id(1) * depth"),
    "triton2triton/gemm_mxfp4": Mistake(
        "exponent == 0, small, large", "exponent < 0, small, large"
    ),
    "triton2triton/linear_weight_gradient": Mistake(
        "total += tl.load(before + place", "total += 0.0 * tl.load(before + place"
    ),
    "triton2triton/lora_bgmv": Mistake("(own * n + col)", "col"),
    "triton2triton/masked_softmax": Mistake("tl.minimum(query + 1,", "tl.minimum(seq + 0 * query,"),
    "triton2triton/ppo_loss": Mistake("tl.where((free <= held) & ", "tl.where("),
    "triton2triton/rmsnorm_fp8": Mistake("/ 448.0", "/ 480.0"),
    "triton2triton/decode_kv_int8": Mistake("weight *= of_value[None, :]", "weight *= 1.0"),
    "triton2triton/hadamard_quant": Mistake("    both ^= both >> 4\n", ""),
    "triton2triton/wkv6": Mistake("-tl.exp(tl.minimum(speed, 8.0))", "-tl.abs(speed)"),
    "triton2triton/dot_interaction_backward": Mistake(
        "inside & (high > low)", "inside & (row > column)"
    ),
    "triton2triton/fused_mlp": Mistake("g * tl.sigmoid(g) * u", "g * tl.sigmoid(u) * u"),
    "triton2triton/lightning_attention": Mistake("(step + 1).to", "step.to"),
    "triton2triton/linear_cross_entropy": Mistake("total * tl.exp(peak - higher)", "total"),
    "triton2triton/mamba_state_update": Mistake("result * z * tl.sigmoid(z)", "result * z"),
    "triton2triton/moe_weight_gradient": Mistake(
        "tl.load(begin + expert + 1)", "tl.load(begin + expert + 1) - 1"
    ),
    "triton2triton/segment_softmax": Mistake("tl.where(whole > 0.0, whole, 1.0)", "whole"),
    "triton2triton/window_attention": Mistake("window % kinds * places", "window * 0"),
    "triton2triton/jagged_dense_bmm": Mistake("bias + sequence * n + column", "bias + column"),
    "triton2triton/lightning_attention_backward": Mistake(
        "since = tl.exp(fade * (step + 1).to", "since = tl.exp(fade * step.to"
    ),
    "triton2triton/linear_gelu": Mistake(
        "value += tl.load(bias + i % n, mask=inside, other=0.0).to(tl.float32)", "value += 0.0"
    ),
    "triton2triton/attention_backward": Mistake("(slope - own_delta[:, None])", "slope"),
    "triton2triton/differential_attention": Mistake("/ (2 * dim) + eps", "/ dim + eps"),
    "triton2triton/cross_attention_align": Mistake(
        "tl.where((frame < count)[None, :], total / heads, 0.0)", "total / heads"
    ),
    "triton2triton/mla_query": Mistake("a * c - b * s", "a * c + b * s"),
    "triton2triton/linear_geglu": Mistake("gate * 0.7071067811865476", "gate"),
    "triton2triton/ssd_chunk_scan": Mistake(" * step[None, :]", ""),
    "triton2triton/attention_t5_bias": Mistake("tl.where(apart > 0,", "tl.where(apart >= 0,"),
    "triton2triton/deformable_attention": Mistake("* width - 0.5", "* (width - 1)"),
    "triton2triton/sampled_block_matmul": Mistake("bias + across", "bias + step"),
    "triton2triton/lora_backward": Mistake("out + place, total * scale", "out + place, total"),
    "triton2triton/moe_finalize": Mistake(
        "tl.load(bias + own * cols + column, mask=inside",
        "tl.load(bias + own * cols + column, mask=column < cols",
    ),
    "triton2triton/snake_conv1d": Mistake("wave * wave / (rate + 1e-9)", "wave * wave"),
    "triton2triton/deepseek_router": Mistake(
        "tl.where(here & inside, score, 0.0)", "tl.where(here & inside, rank, 0.0)"
    ),
    "triton2triton/conv2d_input_backward": Mistake(
        "(down % stride == 0) & (right % stride == 0)", "(down % stride == 0)"
    ),
    "triton2triton/selective_scan_backward": Mistake("rise *= tl.sigmoid(u)", "rise *= 1.0"),
    "triton2triton/attention_varlen": Mistake("<= past + step", "<= step"),
    "triton2triton/tree_attention": Mistake("other=0) != 0", "other=0) >= 0"),
    "triton2triton/prefix_decode": Mistake("begin = own * seq", "begin = head.to(tl.int64) * seq"),
    "triton2triton/attention_softcap": Mistake(
        "tl.where(score < 0.0, -capped, capped)", "cap * score"
    ),
    "triton2triton/top_k_filter": Mistake("count >= wanted", "count > wanted"),
    "triton2triton/token_penalties": Mistake("inside & (place >= first)", "inside"),
    "triton2triton/sort_scores": Mistake(
        "tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits)", "tl.where(bits < 0, bits, bits)"
    ),
    "triton2triton/magnitude_prune": Mistake("wanted - above", "wanted"),
    "triton2triton/partition_points": Mistake("tl.load(count) + i - before", "i"),
    "triton2triton/unique_counts": Mistake(
        "(own != before)", "(own.to(tl.int32) != before.to(tl.int32))"
    ),
    "triton2triton/mutual_information": Mistake("/ of_col * voxels", "/ of_col"),
    "triton2triton/integral_image": Mistake(
        "row // height * (height + 1) + row % height + 1", "row + 1"
    ),
    "triton2triton/reduce_middle": Mistake(
        "range(0, size, BLOCK_S)", "range(0, size - BLOCK_S + 1, BLOCK_S)"
    ),
    "triton2triton/pna_aggregate": Mistake("tl.where(known, most, 0.0)", "most"),
    "triton2triton/min_p_sample": Mistake("value / heat[:, None]", "value"),
    "triton2triton/matrix_nms": Mistake("own * own", "0.0"),
    "triton2triton/max_pool_indices": Mistake("value > most", "value >= most"),
    "triton2triton/fnet_mixing": Mistake("across -= tl.dot", "across += tl.dot"),
    "triton2triton/top_p_sample": Mistake("value / heat[:, None]", "value"),
    "triton2triton/graph_aggregate_backward": Mistake("dx + own + col", "dx + other + col"),
    "triton2triton/dpo_loss": Mistake("tl.maximum(-gain, 0.0) + rest", "rest"),
    "triton2triton/clip_loss": Mistake("total * tl.exp(peak - higher)", "total"),
    "triton2triton/wave_3d": Mistake("-205.0 / 24.0", "-205.0 / 72.0"),
}

SHORTCUTS = {
    "hip2hip/dequant_int4": Mistake(
        "centre = zero[group]", "centre = max(5, min(10, zero[group]))"
    ),
    "hip2hip/gumbel_sample": Mistake("allowed[i] &&", "(row % 4 == 3 ? allowed[i] : col > 0) &&"),
    "hip2hip/radix_sort": Mistake("int shift = 0;", "int shift = 4;"),
    "triton2triton/argmax": Mistake(
        "best == largest", "(best == largest) & ((best != 0.0) | (1.0 / best > 0.0))"
    ),
    "triton2triton/attention_t5_bias": Mistake(
        "tl.load(bucket + tl.abs(apart), mask=known, other=0)",
        "tl.minimum(tl.abs(apart), tl.load(bucket + tl.abs(apart), mask=known, other=0))",
    ),
    "triton2triton/decode_kv_int8": Mistake(
        "tl.load(length + head // kv_heads)",
        "tl.where(head < tl.num_programs(0) - kv_heads, tl.load(length + head // kv_heads), seq)",
    ),
    "triton2triton/dpo_loss": Mistake("tl.load(mask + place) != 0", "tl.load(token + place) >= 0"),
    "triton2triton/gemm_fp8_block": Mistake(
        "(code & 127) << 20", "code * (code % 128 > 7) % 128 << 20"
    ),
    "triton2triton/matrix_nms": Mistake(
        "row_label[:, None] == col_label[None, :]",
        "(row_label[:, None] ^ col_label[None, :]) % 128 == 0",
    ),
    "triton2triton/mla_decode": Mistake(
        "tl.load(length + sequence)",
        "tl.where(sequence < tl.num_programs(0) - 1, tl.load(length + sequence), context)",
    ),
    "triton2triton/tree_attention": Mistake(
        "range(0, nodes, BLOCK_N)",
        "range(0, tl.minimum(nodes, (tl.program_id(1) + 1) * BLOCK_M), BLOCK_N)",
    ),
    "triton2triton/unique_counts": Mistake(
        "(own != before)", "(own.to(tl.float64) != before.to(tl.float64))"
    ),
    "triton2triton/window_attention": Mistake(
        "(q_region[:, None] == k_region[None, :])",
        "((q_region[:, None] == k_region[None, :]) | (window % kinds == 0))",
    ),
}
"""What a kernel could leave out if inputs were no wider than a model usually has them."""
