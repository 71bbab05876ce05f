#!/usr/bin/env python3
"""Speed of architectures that are not dense transformers beside llama.cpp, on this machine, in one run.

  families.py --ggcc build/ggcc --peers DIR [--only REGEX] [--type Q8_0] [--keep DIR] [--check]

--peers: the folder of peers.sh (bin/llama-quantize, bin/llama-bench, bin/lc_logits). Each family is a `ggcc synth` model of few
layers with real widths, heads and states, which llama-quantize makes a file of; then both sides take turns on that file, as in
speed.py, and medians and their ratio are printed: a prompt of --pp tokens, --tg generated, 1 and 2 threads. Random numbers
choose experts evenly, which is what balanced models do. The vocabulary is small, so that the layers are what is measured.
--check compares logits of 40 random ids instead (a position's largest difference in standard deviations of llama.cpp's logits; the
median, as a near tie of two experts may change some): --type F32 shows that both compute the same model. --keep: where models stay
for the next run. Figures are for people: nothing here passes or fails.
"""
import argparse, os, re, tempfile
import numpy as np

from speed import measure, run

HEADS = """embedding_length=1024 attention.head_count=16 attention.head_count_kv=4 attention.key_length=64 attention.value_length=64
    rope.dimension_count=64 """
EXPERTS = "expert_count=32 expert_used_count=8 expert_feed_forward_length=512 "
FAMILIES = {  # name: architecture, type, keys
    "experts": ("qwen3moe", "Q4_K_M", HEADS + EXPERTS + "block_count=4"),
    "sinks": ("gpt-oss", "MXFP4_MOE", HEADS + """block_count=4 biases=1 tensor.output.bias=0 attention.sliding_window=128
        expert_count=16 expert_used_count=4 expert_feed_forward_length=1024"""),
    "latent": ("deepseek2", "Q4_K_M", """embedding_length=1024 attention.head_count=16 attention.head_count_kv=1 block_count=4
        attention.key_length_mla=192 attention.value_length_mla=128 attention.key_length=576 attention.value_length=512
        attention.kv_lora_rank=512 attention.q_lora_rank=768 rope.dimension_count=64 feed_forward_length=2816
        leading_dense_block_count=1 expert_count=32 expert_used_count=6 expert_feed_forward_length=512 expert_shared_count=2"""),
    "mamba": ("mamba", "Q8_0", """embedding_length=1024 ssm.inner_size=2048 ssm.state_size=16 ssm.time_step_rank=64 block_count=8"""),
    "mamba2": ("mamba2", "Q8_0", """embedding_length=1024 ssm.inner_size=2048 ssm.state_size=128 ssm.time_step_rank=32
        ssm.group_count=1 tensor.ssm_norm=1 block_count=8"""),
    "rwkv6": ("rwkv6", "Q8_0", """embedding_length=1024 feed_forward_length=3584 wkv.head_size=64 time_mix_extra_dim=32
        time_decay_extra_dim=64 ne.time_mix_lerp_fused=1024,1,1,5 tensor.time_mix_lerp_fused=1 tensor.output_norm.bias=1
        tensor.attn_norm.bias=1 block_count=6"""),
    "rwkv7": ("rwkv7", "Q8_0", """embedding_length=1024 feed_forward_length=4096 wkv.head_size=64 attention.decay_lora_rank=64
        attention.iclr_lora_rank=64 attention.value_residual_mix_lora_rank=64 attention.gate_lora_rank=128 ne.time_mix_v0=1024
        ne.time_mix_v1=1024,64 ne.time_mix_v2=64,1024 ne.time_mix_lerp_fused=1024,1,1,6 tensor.output_norm.bias=1
        tensor.attn_norm.bias=1 tensor.time_mix_ln=1 tensor.time_mix_ln.bias=1 block_count=6"""),
    "parallel": ("falcon-h1", "Q4_K_M", HEADS + """tensor.ffn_norm=bare feed_forward_length=2048 ssm.inner_size=1536
        ssm.state_size=128 ssm.time_step_rank=24 ssm.group_count=1 block_count=6"""),
    "delta": ("qwen3next", "Q4_K_M", """embedding_length=1024 attention.head_count=8 attention.head_count_kv=2 block_count=4
        attention.key_length=256 attention.value_length=256 rope.dimension_count=64 ssm.inner_size=2048 ssm.state_size=128
        ssm.group_count=8 ssm.time_step_rank=16 expert_shared_feed_forward_length=512 """ + EXPERTS),
    "shortconv": ("lfm2", "Q4_K_M", HEADS.replace("kv=4", "kv=0,0,8,0,0,8") + "feed_forward_length=4608 block_count=6"),
}


def make(a, name, folder):
    """The family's quantised file, made unless it is there."""
    arch, kind, sets = FAMILIES[name]
    kind = a.type or kind
    model, source = "%s/%s-%s.gguf" % (a.keep or folder, name, kind), folder + "/f32.gguf"
    if not os.path.exists(model):
        words = [w for s in sets.split() for w in ("--set", s)]
        more = ["--set", "context_length=1024", "--set", "vocab_size=4096"]
        run([a.ggcc, "synth", arch, "-o", source, "--quiet", *words, *more])
        run([a.peers + "/bin/llama-quantize", source, folder + "/new.gguf", kind, "2"])
        os.remove(source)
        os.rename(folder + "/new.gguf", model)
    return model


def check(a, program, model, folder):
    """How far apart the logits are: the median over positions of the largest difference."""
    ids, n = folder + "/ids", 40
    with open(ids, "w") as f:
        f.write(" ".join(map(str, np.random.RandomState(1).randint(3, 280, size=n))) + "\n")
    run([program, "logits", "--ids", ids, "-o", folder + "/a", "--threads", "1"])
    run([a.peers + "/bin/lc_logits", model, ids, folder + "/b", "all", "f32" if a.type == "F32" else "f16", "1", "0"])
    x, y = (np.fromfile(folder + p, "<f4").reshape(n, -1) for p in ("/a", "/b"))
    print("  logits differ by %.1e standard deviations" % (np.median(np.abs(x - y).max(1)) / y.std()), flush=True)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--ggcc", default="build/ggcc")
    ap.add_argument("--peers", required=True)
    ap.add_argument("--only", default="", help="of " + ", ".join(FAMILIES))
    ap.add_argument("--type", help="of llama-quantize, for every family")
    ap.add_argument("--keep", help="a folder that exists, on the temporary files' disk")
    ap.add_argument("--check", action="store_true")
    ap.add_argument("--threads", default="1,2")
    ap.add_argument("--pp", type=int, default=256)
    ap.add_argument("--tg", type=int, default=64)
    ap.add_argument("--turns", type=int, default=3)
    a = ap.parse_args()
    for name in FAMILIES:
        if not re.search(a.only, name):
            continue
        with tempfile.TemporaryDirectory(dir=a.keep) as folder:
            model, program = make(a, name, folder), folder + "/program"
            run([a.ggcc, "build", "--quiet", model, "-o", program])
            print("%s: %s, %.0f MB" % (os.path.basename(model)[:-5], FAMILIES[name][0], os.path.getsize(model) / 1e6), flush=True)
            if a.check:
                check(a, program, model, folder)
            else:
                measure(a, program, model)


if __name__ == "__main__":
    main()
