"""The mistakes. In: a Family. Out: for each kind of mistake, all places where it can be made in that family's description, the
library parts that it uses, or its file. Nothing here knows a family: places are found in the text (declarations, calls, words of
the language) and in the tables of keys and tensors.

A Mistake has what it is in words, the changed texts or the change of the file, and where: (text, line) or the names in the file.
"""
import re
import struct
from dataclasses import dataclass, field

from family import gguf, split


@dataclass
class Mistake:
    what: str
    texts: dict = field(default_factory=dict)
    change: object = None
    at: tuple = None  # (text, line number)
    names: list = field(default_factory=list)  # of keys or tensors, one of which a good message has


# ---- the text ----


def short(name, old, new):
    """Where, and the words that differ."""
    a, b = old.split(" "), new.split(" ")
    first = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
    last = next((i for i, (x, y) in enumerate(zip(a[first:][::-1], b[first:][::-1])) if x != y), min(len(a), len(b)) - first)
    place = " ".join(old.split()[:3])[:28]
    return f"{name}, `{place} ..`: {' '.join(a[first : len(a) - last])} -> {' '.join(b[first : len(b) - last]) or 'nothing'}"


def lines_of(family):
    """(text, number, code) of every line of code, the description's own lines first."""
    for name in sorted(family.texts, key=lambda n: n != family.main):
        for i, line in enumerate(family.texts[name].split("\n")):
            code = split(line)[0].rstrip()
            if code.strip() and not re.match(r"\s*(arch|use)\b", code):
                yield name, i, code


def edited(family, name, number, code):
    """The texts with line `number` of text `name` having other code."""
    lines = family.texts[name].split("\n")
    comment = split(lines[number])[1]
    lines[number] = (code.rstrip() + "  " + comment).rstrip() if comment else code.rstrip()
    return {name: "\n".join(lines)}


def on_line(family, pattern, replace, unless=None):
    """A mistake for each place where `pattern` stands in code: it becomes `replace`."""
    for name, number, code in lines_of(family):
        if unless and re.search(unless, code):
            continue
        for m in re.finditer(pattern, code):
            new = code[: m.start()] + m.expand(replace) + code[m.end() :]
            yield Mistake(short(name, code, new), edited(family, name, number, new), at=(name, number + 1))


DECLARED = re.compile(r"^(\s*tensor\s+)([^:]*?)(\s*:\s*)(.*)$")


def declarations(family):
    """(text, line number, names, shape and what follows) of the tensors"""
    for name, number, code in lines_of(family):
        m = DECLARED.match(code)
        if m:
            yield name, number, [re.sub(r"\[.*", "", n.strip()) for n in m.group(2).split(",")], m


def without(text, number, m, names, gone):
    """The text without the declaration of `gone`."""
    lines = text.split("\n")
    left = [n.strip() for n in m.group(2).split(",") if re.sub(r"\[.*", "", n.strip()) != gone]
    comment = split(lines[number])[1]
    lines[number] = (m.group(1) + ", ".join(left) + m.group(3) + m.group(4) + "  " + comment).rstrip() if left else ""
    return "\n".join(lines)


def unused(family, keep_declaration):
    """What uses a tensor is left out: a norm without its weight, a sum without what is added."""
    for name, number, names, m in declarations(family):
        for tensor in names:
            if tensor == "rope_freqs" or "$" in tensor:
                continue
            word = re.escape(tensor) + r"(?![\w.$(\[])"
            found = False
            lines = family.texts[name].split("\n")
            for i, line in enumerate(lines):
                if i == number:
                    continue
                code, comment = split(line)
                new = re.sub(r", (?:\w+: )?(?<![\w.])" + word + r"(?=[,)])|(?: [*+] |, )" + word, "", code) if "tensor" not in code else code
                if new != code:
                    found, lines[i] = True, new + comment
            text = "\n".join(lines)
            left = [x for x in text.split("\n") if re.search(r"(?<![\w.$])" + re.escape(tensor) + r"(?![\w$])", split(x)[0])]
            if not found or len(left) > 1:
                continue
            if not keep_declaration:
                text = without(text, number, m, names, tensor)
            yield Mistake(f"{name}: nothing uses '{tensor}'" + ("" if keep_declaration else ", and its declaration is gone"),
                          {name: text}, at=(name, number + 1) if keep_declaration else None, names=[tensor])


def bias_unused(family):
    for name, number, names, m in declarations(family):
        if "+ bias" in m.group(4):
            new = m.group(1) + m.group(2) + m.group(3) + re.sub(r" *\+ bias\??", "", m.group(4))
            yield Mistake(f"{name}: no '+ bias' for '{', '.join(names)}'", edited(family, name, number, new), names=names)


def misspelt(word):
    middle = len(word) // 2
    swapped = word[: middle - 1] + word[middle] + word[middle - 1] + word[middle + 1 :]
    return swapped if swapped != word else word + "s"


def tensor_misspelt(family):
    for name, number, names, m in declarations(family):
        for tensor in names:
            if len(tensor) < 4 or "=" in m.group(4) or " or " in m.group(4):
                continue
            wrong = misspelt(tensor)
            text = re.sub(r"(?<![\w.])" + re.escape(tensor) + r"(?![\w.])", wrong.replace("\\", ""), family.texts[name])
            yield Mistake(f"{name}: '{tensor}' is called '{wrong}'", {name: text}, at=(name, number + 1), names=[tensor])


def sizes(family):
    return re.findall(r"^size\s+(\w+)\s*=", family.texts[family.main], re.M)


def parts_of(text):
    """Split at commas outside brackets."""
    out, depth, last = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "[{(") - (c in "]})")
        if c == "," and depth == 0:
            out.append(text[last:i].strip())
            last = i + 1
    return out + [text[last:].strip()]


def shape_of(rest):
    """The shape, and what stands behind it."""
    depth = 0
    for i in range(len(rest)):
        depth += (rest[i] in "[{(") - (rest[i] in "]})")
        if depth == 0 and re.match(r"\s+(\+ bias|optional|exact|or\b|=)", rest[i:]):
            return rest[:i], rest[i:]
    return rest, ""


def wrong_shape(family):
    """Two axes exchanged, or another size in the place of one."""
    known = sizes(family)
    for name, number, names, m in declarations(family):
        shape, rest = shape_of(m.group(4))
        wrong = []
        if " -> " in shape:
            a, b = shape.split(" -> ", 1)
            wrong += [f"{b} -> {a}"] if "?" not in shape else []
        elif len(parts_of(shape)) > 1:
            wrong += [", ".join(reversed(parts_of(shape)))]
        others = [s for s in known if not re.search(rf"\b{s}\b", shape)]
        words = [w for w in known if re.search(rf"\b{w}\b", shape)]
        for w in words if name == family.main else []:
            if others:
                wrong.append(re.sub(rf"\b{w}\b", others[len(shape) % len(others)], shape, count=1))
        if name != family.main and not wrong:
            wrong += [re.sub(r"^(\w+(\(\w+\))?)", r"2 * \1", shape)]
        for new in wrong:
            code = m.group(1) + m.group(2) + m.group(3) + new + rest
            yield Mistake(short(name, m.group(0), code), edited(family, name, number, code), at=(name, number + 1), names=names)


def parts_exchanged(family):
    """The order of a record's parts, or of the tensors that they are made of."""
    for name, number, names, m in declarations(family):
        for r in re.finditer(r"\{([^{}]*)\}", m.group(4)):
            parts = parts_of(r.group(1))
            for i in range(len(parts) - 1):
                new = parts[:i] + [parts[i + 1], parts[i]] + parts[i + 2 :]
                rest = m.group(4)[: r.start(1)] + ", ".join(new) + m.group(4)[r.end(1) :]
                code = m.group(1) + m.group(2) + m.group(3) + rest
                yield Mistake(short(name, m.group(0), code), edited(family, name, number, code), at=(name, number + 1))


def norms_exchanged(family):
    """Each of two norms in the other's place."""
    for name, number, names, m in declarations(family):
        norms = [n for n in names if "norm" in n]
        for a, b in zip(norms, norms[1:]):
            lines = family.texts[name].split("\n")
            changed = 0
            for i, line in enumerate(lines):
                code, comment = split(line)
                if i == number or "tensor" in code:
                    continue
                new = re.sub(rf"(?<![\w.])({re.escape(a)}|{re.escape(b)})(?![\w.])", lambda x: b if x.group(1) == a else a, code)
                changed += new != code
                lines[i] = new + comment
            if changed:
                yield Mistake(f"{name}: '{a}' and '{b}' in each other's place", {name: "\n".join(lines)})


def key_misspelt(family):
    for name, number, code in lines_of(family):
        m = re.match(r"(\s*(?:size|real|flag)\s+[\w\[\]]+\s*=\s*)([a-z_0-9]+(?:\.[a-z_0-9]+)+|block_count|embedding_length|feed_forward_length)(.*)$", code)
        if m:
            wrong = misspelt(m.group(2))
            yield Mistake(short(name, code, m.group(1) + wrong + m.group(3)), edited(family, name, number, m.group(1) + wrong + m.group(3)),
                          at=(name, number + 1), names=[m.group(2)])


def arguments(family):
    """Two sizes that a call is given, one in the other's place."""
    size = "|".join(sizes(family)) or "none"
    yield from on_line(family, rf"(?<=[ (])({size}), ({size})(?=[,)])", r"\2, \1", unless=r"^\s*(tensor|size|layout|state)\b")


def pairs(family):
    yield from on_line(family, r"pairs: halves", "pairs: adjacent")
    yield from on_line(family, r"pairs: adjacent", "pairs: halves")


OTHER = {"silu": "gelu", "gelu": "silu", "gelu_erf": "relu", "gelu_quick": "relu", "relu": "silu", "sigmoid": "softmax", "softmax": "sigmoid", "swiglu": "geglu",
         "geglu": "swiglu", "reglu": "swiglu", "relu_squared": "relu", "swiglu_oai": "swiglu", "tanh": "sigmoid"}


def activation(family):
    for word, other in OTHER.items():
        yield from on_line(family, rf"(?<![\w.]){word}(?=[,()\s}}]|$)", other, unless=r"^\s*def\s+" + word)


def sees(family):
    yield from on_line(family, r"window\(([^()]*)\)", r"past")
    yield from on_line(family, r"chunk\(([^()]*)\)", r"window(\1)")
    yield from on_line(family, r"(?<=[ ,(])past\b(?! or)", "window(8)", unless=r"window\(|rope")
    yield from on_line(family, r"(?<=[ ,(:])all\b", "past", unless=r"^\s*def")


def scale(family):
    yield from on_line(family, r"1 ?/ ?sqrt\((\w+)\)", r"1/\1")
    yield from on_line(family, r"scale: (\w+)\)", r"scale: 2 * \1)")


def kind_of_norm(family):
    yield from on_line(family, r"\brms_norm\(", "layer_norm(")
    yield from on_line(family, r"\blayer_norm\(", "rms_norm(")


def residual(family):
    yield from on_line(family, r"\bx = x \+ ", "x = ")


def forgotten(family):
    yield from on_line(family, r"\bx = x \+ ", "y_new = ")


# ---- the file ----


def both(family, key):
    """A key as files have it, and as descriptions write it."""
    name = key.decode()
    return [name, name[len(family.prefix()) :]]


def of_arch(family):
    return [k for k in family.keys if k[0].startswith(family.prefix())]


def key_removed(family):
    for k in of_arch(family):

        def change(keys, tensors, name=k[0]):
            keys[:] = [x for x in keys if x[0] != name]

        yield Mistake(f"the file: without key '{k[0].decode()}'", change=change, names=both(family, k[0]))


def shown(kind, value):
    if kind == gguf.ARRAY:
        return "[" + ", ".join(shown(value[0], x) for x in value[1][:4]) + ("]" if len(value[1]) <= 4 else ", ..]")
    return value.decode() if kind == gguf.STRING else f"{value:.6g}" if kind == gguf.F32 else str(value).lower()


def altered(kind, value):
    """Another value of the same kind."""
    if kind == gguf.ARRAY:
        return value[0], [altered(value[0], x) for x in value[1]]
    if kind == gguf.STRING:
        return value + b"-other"
    if kind == gguf.BOOL:
        return not value
    return value * 2 if value else 1


def key_changed(family):
    for k in of_arch(family):

        def change(keys, tensors, name=k[0]):
            x = gguf.key(keys, name)
            x[2] = altered(x[1], x[2])

        to = altered(k[1], k[2])
        yield Mistake(f"the file: key '{k[0].decode()}' is {shown(k[1], to)} in the place of {shown(k[1], k[2])}", change=change, names=both(family, k[0]))


def key_added(family):
    for name, value in (b"attention.output_gate", 1), (b"embedding_multiplier", 3), (b"rope.dimension_sections_2", 7), (b"attention.scale_depth", 2):
        full = family.prefix() + name

        def change(keys, tensors, full=full, value=value):
            keys.append([full, gguf.U32, value])

        yield Mistake(f"the file: also has key '{full.decode()}' = {value}", change=change, names=[full.decode()])


def one_layer(family):
    """One tensor of each name: of the first layer that has it."""
    had = set()
    for t in family.tensors:
        base = re.sub(rb"^(\w+)\.\d+\.", rb"\1.#.", t[0])
        if base not in had:
            had.add(base)
            yield t


def tensor_removed(family):
    for t in one_layer(family):

        def change(keys, tensors, name=t[0]):
            tensors[:] = [x for x in tensors if x[0] != name]

        yield Mistake(f"the file: without tensor '{t[0].decode()}'", change=change, names=[t[0].decode(), *halves(t[0].decode())])


def halves(name):
    """blk.0.attn_q.bias -> attn_q"""
    return [re.sub(r"^blk\.\d+\.|\.(weight|bias)$", "", name)]


def tensor_added(family):
    layered = any(t[0].startswith(b"blk.0.") for t in family.tensors)
    names = [b"blk.0.attn_sub_norm.weight", b"blk.0.ffn_gate_shexp.weight", b"blk.1.attn_sinks.weight", b"blk.0.attn_output.scale_2"] if layered else []
    for name in names + [b"output_scale.weight", b"output_norm_2.bias"]:

        def change(keys, tensors, name=name):
            if all(t[0] != name for t in tensors):
                tensors.append([name, [8], 0, struct.pack("<8f", *range(8))])

        yield Mistake(f"the file: also has tensor '{name.decode()}' [8]", change=change, names=[name.decode()])


def tensor_shape(family):
    """The same numbers, with the axes exchanged, or with one axis twice as long and the other half; a vector: half of it."""
    for t in one_layer(family):
        dims = t[1]
        if len(dims) >= 2 and dims[0] != dims[1]:
            new = [dims[1], dims[0], *dims[2:]]
        elif len(dims) >= 2:
            new = [dims[0] * 2, dims[1] // 2, *dims[2:]]
        else:
            new = [dims[0] // 2]

        def change(keys, tensors, name=t[0], new=new):
            x = next(x for x in tensors if x[0] == name)
            n = 1
            for d in new:
                n *= d
            x[1], x[3] = new, x[3][: 4 * n]

        if all(new):
            yield Mistake(f"the file: tensor '{t[0].decode()}' is {list(reversed(new))} in the place of {list(reversed(dims))}", change=change, names=[t[0].decode()])


def expert_order(family):
    """The products of a stack, in one tensor of three, are moved on by one."""
    for t in one_layer(family):
        if len(t[1]) != 3 or b"exps" not in t[0]:
            continue

        def change(keys, tensors, name=t[0]):
            x = next(x for x in tensors if x[0] == name)
            one = len(x[3]) // x[1][2]
            x[3] = x[3][one:] + x[3][:one]

        yield Mistake(f"the file: the experts of '{t[0].decode()}' are moved on by one", change=change, names=[t[0].decode()])


# The kinds, and of those that names and shapes always tell, SURE.
KINDS = {
    "key removed": key_removed, "key changed": key_changed, "key added": key_added, "tensor removed": tensor_removed,
    "tensor added": tensor_added, "tensor's shape": tensor_shape, "experts in another order": expert_order,
    "key misspelt": key_misspelt, "tensor misspelt": tensor_misspelt,
    "tensor left unused": lambda f: list(unused(f, False)) + list(bias_unused(f)), "declared, never used": lambda f: unused(f, True),
    "wrong shape": wrong_shape, "arguments exchanged": arguments, "parts in another order": parts_exchanged, "wrong pairing": pairs,
    "wrong activation": activation, "wrong view": sees, "wrong scale": scale, "wrong kind of norm": kind_of_norm,
    "norms exchanged": norms_exchanged, "residual left out": residual, "result forgotten": forgotten,
}
SURE = {"key added", "tensor added", "tensor's shape", "key misspelt", "tensor misspelt", "tensor left unused", "declared, never used", "result forgotten"}
