#!/usr/bin/env python3
# Random templates over random conversations, compared with Python's Jinja2 as Transformers sets it up.
#   fuzz.py JINJA_TOOL [--count N] [--seed N] [--compiled SOURCE-FOLDER WORK-FOLDER]
# Every statement, filter, test, method and slice form of the implemented set is a named feature; the counts are printed,
# and a run of 5000 or more fails when one was used less than 20 times. With --compiled the templates also run as C.
import argparse
import collections
import datetime
import json
import os
import random
import sys

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import records

# A slice of a dict, within what Jinja2 computes while it compiles and ggcc does not see as constant: docs/text.md.
UNFOLDED = "TypeError: unhashable type: 'slice'"
NOW = "2026-07-26T09:05:03"


# ---- the reference ----
class Generation(jinja2.ext.Extension):
    tags = {"generation"}

    def parse(self, parser):
        lineno = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_generation_support"), [], [], body).set_lineno(lineno)

    def _generation_support(self, caller):
        return caller()


def environment():
    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    def strftime_now(format):
        return datetime.datetime.fromisoformat(NOW).strftime(format)

    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = strftime_now
    return env


ENV = environment()


def reference(source, variables):
    try:
        template = ENV.from_string(source)
    except (jinja2.exceptions.TemplateSyntaxError, jinja2.exceptions.TemplateAssertionError, AssertionError, SyntaxError, OverflowError) as e:
        return "refused", str(e)
    try:
        text = template.render(**variables)
        text.encode("utf-8")
        return "ok", text
    except jinja2.exceptions.TemplateError as e:
        if type(e) is jinja2.exceptions.TemplateError:
            return "raised", str(e)
        return "error", "%s: %s" % (type(e).__name__, e)
    except RecursionError:
        return "skip", ""
    except Exception as e:
        return "error", "%s: %s" % (type(e).__name__, e)


# ---- random values ----
WORDS = ["", "a", "Hello", "hello world", "  two  spaces ", "ÄÖ ß", "世界 👋🏽", "x\ny\r\nz\n", "<b>&'\"</b>", "a,b,,c", "ab12", "12", "-3.5", "1e3", "İΣΣ", "ǆ ﬁ",
         "UPPER lower Title", "tab\there", "Ⅷ²½", "%s-%d", "{}|{0}", "\x7f\u2028", "don't", "path/to x", "0x1F", "None", "aXbXc", "é", "\\n", "_id", "a.b", "[1] (2) {3} <4>-5", "١٢", " -४.५ "]
KEYS = ["role", "content", "name", "a", "b", "text", "x1", "key", "k", "Über"]


def value(rng, depth=2):
    kind = rng.randrange(12 if depth else 8)
    if kind < 3:
        return rng.choice(WORDS)
    if kind == 3:
        return rng.choice([0, 1, -1, 2, 7, 10, 255, -300, 12345678901234567890, -2**63, 2**63 - 1, 10**30])
    if kind == 4:
        return rng.choice([0.0, 0.5, -1.5, 2.0, 1e16, 1e-7, 3.14159, 1e300, 0.1, 123456.789, -0.0, 2.5, 5e-324])
    if kind == 5:
        return rng.choice([True, False])
    if kind == 6:
        return None
    if kind == 7:
        return rng.randrange(-5, 20)
    if kind < 10:
        return [value(rng, depth - 1) for _ in range(rng.randrange(4))]
    return {rng.choice(KEYS): value(rng, depth - 1) for _ in range(rng.randrange(4))}


def message(rng):
    m = {"role": rng.choice(["user", "assistant", "system", "tool", "User"])}
    m["content"] = rng.choice([rng.choice(WORDS), rng.choice(WORDS), None, [{"type": "text", "text": rng.choice(WORDS)}, {"type": "image"}]])
    if rng.random() < 0.3:
        m["tool_calls"] = [{"type": "function", "function": {"name": rng.choice(WORDS), "arguments": value(rng)}}]
    if rng.random() < 0.2:
        m["reasoning_content"] = rng.choice(WORDS)
    return m


def variables(rng):
    return {"messages": [message(rng) for _ in range(rng.randrange(5))], "bos_token": "<s>", "eos_token": "</s>",
            "add_generation_prompt": rng.random() < 0.5, "tools": rng.choice([None, [value(rng, 3) for _ in range(2)]]),
            "s": rng.choice(WORDS), "t": rng.choice(WORDS), "n": rng.randrange(-3, 12), "big": rng.choice([2**70, -2**65, 2**63]),
            "x": rng.choice([0.5, 2.0, -1.25, 1e20, 3.14159]), "b": rng.random() < 0.5, "nothing": None,
            "ints": [rng.randrange(-3, 9) for _ in range(rng.randrange(6))], "strs": [rng.choice(WORDS) for _ in range(rng.randrange(5))],
            "mixed": [value(rng) for _ in range(rng.randrange(5))], "d": {rng.choice(KEYS): value(rng) for _ in range(rng.randrange(5))},
            "rows": [{"k": rng.choice(["a", "B", "b", "c"]), "v": rng.randrange(4), "w": value(rng, 1)} for _ in range(rng.randrange(5))],
            "any": value(rng, 3)}


# ---- random templates ----
class Maker:
    def __init__(self, rng, count):
        self.rng = rng
        self.count = count
        self.names = {"str": ["s", "t", "bos_token"], "int": ["n", "big"], "real": ["x"], "bool": ["b", "add_generation_prompt"],
                      "ints": ["ints"], "strs": ["strs"], "list": ["mixed", "messages", "rows", "ints", "strs"], "dict": ["d"],
                      "any": ["any", "undefined_name", "nothing", "tools"]}
        self.macros = []
        self.loops = 0
        self.depth = 0

    def use(self, feature):
        self.count[feature] += 1

    def pick(self, table):
        """One of [(feature, function)], the rarest so far more often."""
        some = self.rng.sample(table, min(3, len(table)))
        feature, make = min(some, key=lambda f: self.count[f[0]]) if self.rng.random() < 0.6 else some[0]
        self.use(feature)
        text = make()
        return "(%s)" % text if feature.startswith("filter.") else text

    def quote(self, text):
        out = ""
        for c in text:
            out += {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r"}.get(c, c)
        return "'" + out + "'"

    def prose(self):
        """Some words, long enough to be laid out on several lines."""
        words = ["well-known", "a", "the", "  ", "--", "x--y", "state-of-the-art", "it's", "e.g.", "\\n", "\\n\\n", "\\t", "ÄÖ-üß", "un-", "-1", "3-4-5", "a-b", "supercalifragilistic",
                 "\u3000", "世界", "----", "word.--Next", "(sub-)clause", "co-op-er-ate", "1-abc", "ab-1", "'", "end."]
        some = " ".join(self.rng.choices(words, k=self.rng.randrange(1, 26)))
        return '"%s"' % some if self.rng.random() < 0.8 else "(s ~ \"%s\" ~ t)" % some

    # expressions by type
    def e(self, kind, depth=3):
        r = self.rng
        if depth <= 0 or r.random() < 0.25:
            return self.atom(kind)
        if r.random() < 0.04:
            kind = r.choice(["str", "int", "real", "bool", "ints", "strs", "list", "dict", "any"])
        return getattr(self, "e_" + kind)(depth - 1)

    def atom(self, kind):
        r = self.rng
        if r.random() < 0.6 and self.names.get(kind):
            return r.choice(self.names[kind])
        if kind == "str":
            return self.quote(r.choice(WORDS))
        if kind == "int":
            return str(r.choice([0, 1, 2, 3, -1, 10, "1_000", "0x1f", 7]))
        if kind == "real":
            return r.choice(["0.5", "2.0", "1e3", "3.25", "1_0.5"])
        if kind == "bool":
            return r.choice(["true", "false", "True", "False"])
        if kind == "ints":
            return r.choice(["[3, 1, 2]", "range(4)", "[1]", "[]", "range(5, 0, -2)"])
        if kind == "strs":
            return "[%s]" % ", ".join(self.quote(r.choice(WORDS)) for _ in range(r.randrange(4)))
        if kind == "list":
            return r.choice(["[1, 'a', none]", "(1, 2)", "[]", "messages", "[[1, 2], [3]]", "d.items()", "['b', 'A']"])
        if kind == "dict":
            return r.choice(["{'a': 1, 'b': 'x'}", "{}", "{1: 2, none: 3}", "messages[0]", "dict(a=1, text=2)", "{'k': [1, {'z': 1.5}]}"])
        return r.choice(["none", "undefined_name", "any", "messages[0].content", "d.missing", "d['zz']"])

    def e_any(self, d):
        return self.pick([
            ("expr.cond", lambda: "(%s if %s else %s)" % (self.e("any", d), self.e("bool", d), self.e("str", d))),
            ("expr.cond_without_else", lambda: "(%s if %s)" % (self.e("str", d), self.e("bool", d))),
            ("expr.or", lambda: "(%s or %s)" % (self.e("any", d), self.e("any", d))),
            ("expr.and", lambda: "(%s and %s)" % (self.e("any", d), self.e("any", d))),
            ("expr.getattr", lambda: "%s.%s" % (self.e("dict", d), self.rng.choice(KEYS))),
            ("expr.getitem", lambda: "%s[%s]" % (self.e("dict", d), self.quote(self.rng.choice(KEYS)))),
            ("expr.index", lambda: "%s[%s]" % (self.e("list", d), self.e("int", 0))),
            ("expr.dot_number", lambda: "%s.0" % self.rng.choice(["messages", "mixed", "strs"])),
            ("filter.default", lambda: "(%s)|default(%s)" % (self.e("any", d), self.e("str", d))),
            ("filter.d", lambda: "(%s)|d(%s, true)" % (self.e("any", d), self.e("str", d))),
            ("filter.first", lambda: "(%s)|first" % self.e("list", d)),
            ("filter.last", lambda: "(%s)|last" % self.e("list", d)),
            ("filter.min", lambda: "(%s)|min" % self.e("ints", d)),
            ("filter.max", lambda: "(%s)|max%s" % (self.e("strs", d), self.rng.choice(["", "(true)"]))),
            ("filter.min_attribute", lambda: "(rows|min(attribute='v'))"),
            ("filter.attr", lambda: "(%s)|attr(%s)" % (self.e(self.rng.choice(["dict", "str", "any"]), d), self.quote(self.rng.choice(KEYS)))),
            ("dict.get", lambda: "%s.get(%s)" % (self.e("dict", d), self.e("str", 0))),
            ("dict.get_default", lambda: "%s.get(%s, %s)" % (self.e("dict", d), self.e("any", 0), self.e("any", d))),
            ("expr.concat_any", lambda: "(%s ~ %s)" % (self.e("any", d), self.e("any", d))),
            ("expr.paren", lambda: "(%s)" % self.e(self.rng.choice(["int", "str", "list", "dict", "real", "bool"]), d)),
            ("sandbox.hidden", lambda: "%s.%s" % (self.e(self.rng.choice(["list", "dict", "str"]), 0), self.rng.choice(["append", "pop", "update", "__class__", "_x", "clear"]))),
            ("macro.attr", lambda: "%s.%s" % (self.rng.choice(self.macros), self.rng.choice(["name", "arguments", "catch_kwargs", "zz"])) if self.macros else "none"),
            ("real.attr", lambda: "(%s).%s" % (self.e("real", 0), self.rng.choice(["real", "imag", "is_integer()", "zz"]))),
            ("int.attr", lambda: "(%s).%s" % (self.e("int", 0), self.rng.choice(["real", "numerator", "denominator", "bit_length()", "bit_count()", "conjugate()"]))),
        ])

    def e_bool(self, d):
        r = self.rng
        kinds = ["int", "str", "any", "list", "dict", "real", "bool"]
        simple = ["defined", "undefined", "none", "boolean", "false", "true", "integer", "float", "lower", "upper", "string", "mapping", "number", "sequence", "iterable",
                  "callable", "escaped", "odd", "even", "filter", "test"]
        table = [("test." + t, lambda t=t: "%s is %s%s" % (self.e("int" if t in ("odd", "even") else r.choice(kinds), d), r.choice(["", "", "not "]), t)) for t in simple]
        table += [("test." + t, lambda t=t, k=k: "%s is %s(%s)" % (self.e(k, d), t, self.e(k, 0)))
                  for t in ("eq", "ne", "lt", "le", "gt", "ge", "equalto", "greaterthan", "lessthan") for k in [r.choice(["int", "str", "real", "list"])]]
        table += [
            ("test.divisibleby", lambda: "%s is divisibleby %s" % (self.e("int", d), r.choice(["2", "3", "(5)", "0"]))),
            ("test.sameas", lambda: "%s is sameas %s" % (self.e("any", d), r.choice(["none", "true", "false"]))),
            ("test.in", lambda: "%s is in %s" % (self.e("int", d), r.choice(["ints", "[1, 2]"]))),
            ("expr.not", lambda: "not %s" % self.e("any", d)),
            ("expr.in_str", lambda: "%s in %s" % (self.e("str", d), self.e("str", d))),
            ("expr.in_list", lambda: "%s in %s" % (self.e("any", d), self.e("list", d))),
            ("expr.in_dict", lambda: "%s not in %s" % (self.e("str", d), self.e("dict", d))),
            ("expr.in_any", lambda: "%s in %s" % (self.e("any", 0), self.e("any", d))),
            ("expr.chain", lambda: "%s < %s <= %s" % (self.e("int", d), self.e("int", d), self.e("int", d))),
            ("expr.method_is", lambda: "%s.%s is %s" % (r.choice(["d", "{'items': 1, 'get': 2}"]), r.choice(["items", "get"]), r.choice(["callable", "defined", "string"]))),
            ("expr.eq_any", lambda: "%s == %s" % (self.e("any", d), self.e("any", d))),
            ("expr.ne_any", lambda: "%s != %s" % (self.e("list", d), self.e("list", d))),
            ("expr.lt_list", lambda: "%s < %s" % (self.e("ints", d), self.e("ints", d))),
            ("expr.order", lambda: "%s %s %s" % (self.e("real", d), r.choice(["<", ">", "<=", ">=", "==", "!="]), self.e("int", d))),
            ("expr.order_str", lambda: "%s %s %s" % (self.e("str", d), r.choice(["<", ">", "<=", ">="]), self.e("str", d))),
            ("expr.and_bool", lambda: "(%s and %s)" % (self.e("bool", d), self.e("bool", d))),
            ("expr.or_bool", lambda: "(%s or %s)" % (self.e("bool", d), self.e("bool", d))),
        ]
        table += [("str." + m, lambda m=m: "%s.%s()" % (self.e("str", d), m)) for m in
                  ["isalnum", "isalpha", "isascii", "isdecimal", "isdigit", "isidentifier", "islower", "isnumeric", "isprintable", "isspace", "istitle", "isupper"]]
        table += [("str." + m, lambda m=m: "%s.%s(%s%s)" % (self.e("str", d), m, r.choice([self.e("str", 0), "('a', 'x')"]), r.choice(["", "", ", 1", ", -2, 5"])))
                  for m in ("startswith", "endswith")]
        return "(%s)" % self.pick(table)

    def e_int(self, d):
        r = self.rng
        table = [("op." + name, lambda sign=sign: "(%s %s %s)" % (self.e("int", d), sign, self.e("int", d)))
                 for name, sign in [("add", "+"), ("sub", "-"), ("mul", "*"), ("floordiv", "//"), ("mod", "%")]]
        table += [
            ("op.pow", lambda: "(%s ** %s)" % (self.e("int", 0), r.choice(["2", "3", "0", "-1", "20"]))),
            ("op.neg", lambda: "(-%s)" % self.e("int", d)),
            ("op.pos", lambda: "(+%s)" % self.e("int", d)),
            ("filter.length", lambda: "(%s)|length" % self.e(r.choice(["list", "str", "dict"]), d)),
            ("filter.count", lambda: "(%s)|count" % self.e("list", d)),
            ("filter.int", lambda: "(%s)|int" % self.e(r.choice(["str", "real", "any", "int", "bool"]), d)),
            ("filter.int_args", lambda: "(%s)|int(%s, %s)" % (self.e("str", d), r.choice(["0", "-1", "none"]), r.choice(["10", "16", "8", "2"]))),
            ("filter.abs", lambda: "(%s)|abs" % self.e(r.choice(["int", "real"]), d)),
            ("filter.sum", lambda: "(%s)|sum" % self.e("ints", d)),
            ("filter.sum_attribute", lambda: "(rows|sum(attribute='v', start=%s))" % self.e("int", 0)),
            ("filter.wordcount", lambda: "(%s)|wordcount" % self.e("str", d)),
            ("filter.round_int", lambda: "(%s)|round(%s)" % (self.e("int", d), r.choice(["0", "1", "-1", "-2"]))),
            ("str.find", lambda: "%s.find(%s%s)" % (self.e("str", d), self.e("str", 0), r.choice(["", ", 1", ", 1, -1"]))),
            ("str.rfind", lambda: "%s.rfind(%s)" % (self.e("str", d), self.e("str", 0))),
            ("str.index", lambda: "%s.index(%s)" % (self.e("str", d), self.e("str", 0))),
            ("str.rindex", lambda: "%s.rindex(%s)" % (self.e("str", d), self.e("str", 0))),
            ("str.count", lambda: "%s.count(%s%s)" % (self.e("str", d), self.e("str", 0), r.choice(["", ", 2", ", 0, 5"]))),
            ("list.count", lambda: "%s.count(%s)" % (self.e("ints", d), self.e("int", 0))),
            ("list.index", lambda: "%s.index(%s)" % (self.e("ints", d), self.e("int", 0))),
            ("expr.length_attr", lambda: "messages|length"),
        ]
        return self.pick(table)

    def e_real(self, d):
        r = self.rng
        return self.pick([
            ("op.div", lambda: "(%s / %s)" % (self.e("int", d), self.e("int", d))),
            ("op.add_real", lambda: "(%s + %s)" % (self.e("real", d), self.e(r.choice(["int", "real"]), d))),
            ("op.mul_real", lambda: "(%s * %s)" % (self.e("real", d), self.e("real", d))),
            ("op.floordiv_real", lambda: "(%s // %s)" % (self.e("real", d), self.e("real", d))),
            ("op.mod_real", lambda: "(%s %% %s)" % (self.e("real", d), self.e("real", d))),
            ("op.pow_real", lambda: "(%s ** %s)" % (self.e("real", 0), r.choice(["2", "3.0", "-1"]))),
            ("filter.float", lambda: "(%s)|float" % self.e(r.choice(["str", "int", "any"]), d)),
            ("filter.float_default", lambda: "(%s)|float(%s)" % (self.e("str", d), r.choice(["1.5", "none"]))),
            ("filter.round", lambda: "(%s)|round" % self.e("real", d)),
            ("filter.round_digits", lambda: "(%s)|round(%s, %s)" % (self.e("real", d), r.choice(["0", "1", "2"]), self.quote(r.choice(["common", "ceil", "floor"])))),
        ])

    def e_str(self, d):
        r = self.rng
        s = lambda: self.e("str", d)
        plain = ["capitalize", "casefold", "lower", "upper", "title", "swapcase", "strip", "lstrip", "rstrip"]
        table = [("str." + m, lambda m=m: "%s.%s()" % (s(), m)) for m in plain]
        table += [("str.%s_chars" % m, lambda m=m: "%s.%s(%s)" % (s(), m, r.choice(["' a'", "'\\n'", "none", "'<>b'"]))) for m in ("strip", "lstrip", "rstrip")]
        table += [("str." + m, lambda m=m: "%s.%s(%s%s)" % (s(), m, r.choice(["10", "3", "12"]), r.choice(["", ", '*'", ", 'é'"]))) for m in ("center", "ljust", "rjust")]
        table += [
            ("str.zfill", lambda: "%s.zfill(%s)" % (s(), self.e("int", 0) if r.random() < 0.2 else "6")),
            ("str.expandtabs", lambda: "%s.expandtabs(%s)" % (s(), r.choice(["", "4", "tabsize=2"]))),
            ("str.replace", lambda: "%s.replace(%s, %s%s)" % (s(), self.e("str", 0), self.e("str", 0), r.choice(["", ", 1"]))),
            ("str.removeprefix", lambda: "%s.removeprefix(%s)" % (s(), self.e("str", 0))),
            ("str.removesuffix", lambda: "%s.removesuffix(%s)" % (s(), self.e("str", 0))),
            ("str.join", lambda: "%s.join(%s)" % (self.e("str", 0), self.e("strs", d))),
            ("str.format", lambda: "%s.format(%s, %s, k=%s)" % (self.quote(r.choice(["{}-{}", "{1}{0}", "{0!r:>8}", "{0!a}", "{k}", "{:>6}|{:<4}", "{{}}{}", "{0:05}", "{0.a}", "{k[a]}", "{:,}", "{:.2f}", "{:x}", "{:+d}", "{:e}", "{:^9}", "{:%}"])), self.e(r.choice(["int", "real", "str"]), 0), self.e("any", 0), self.e("any", 0))),
            ("op.percent", lambda: "(%s %% %s)" % (self.quote(r.choice(["%s", "%d", "%5.2f", "%r", "%a", "%5%%", "%x", "%%%s", "%-6s|", "%05d", "%+d", "%e", "%g", "%c", "%.3s"])), r.choice(["undefined_name", "nothing.x"]) if r.random() < 0.1 else self.e(r.choice(["int", "str", "real", "list"]), 0))),
            ("op.percent_tuple", lambda: "('%%s=%%s' %% (%s, %s))" % (self.e("any", d), self.e("int", 0))),
            ("op.percent_dict", lambda: "('%%(a)s' %% %s)" % self.e("dict", 0)),
            ("op.concat", lambda: "(%s ~ %s ~ %s)" % (s(), self.e("any", d), self.e("int", 0))),
            ("op.add_str", lambda: "(%s + %s)" % (s(), s())),
            ("op.mul_str", lambda: "(%s * %s)" % (s(), r.choice(["2", "0", "3", "n"]))),
            ("slice.str", lambda: "%s[%s]" % (s(), self.slice())),
            ("expr.index_str", lambda: "%s[%s]" % (s(), r.choice(["0", "-1", "2"]))),
            ("const.adjacent", lambda: "(%s %s)" % (self.quote(r.choice(WORDS)), self.quote(r.choice(WORDS)))),
            ("const.double_quotes", lambda: '"a\\t\\x41\\u00e9\\\\"'),
            ("filter.tojson", lambda: "(%s)|tojson" % self.e(r.choice(["any", "dict", "list", "str"]), d)),
            ("filter.tojson_indent", lambda: "(%s)|tojson(indent=%s)" % (self.e(r.choice(["any", "dict", "list"]), d), r.choice(["2", "0", "4", "none", "'\\t'"]))),
            ("filter.tojson_options", lambda: "(%s)|tojson(%s)" % (self.e(r.choice(["any", "dict"]), d), r.choice(["ensure_ascii=true", "sort_keys=true", "separators=(',', ':')", "separators=(', ', ' : '), indent=1"]))),
            ("filter.string", lambda: "(%s)|string" % self.e(r.choice(["any", "dict", "list", "real", "int", "bool"]), d)),
            ("filter.join", lambda: "(%s)|join%s" % (self.e(r.choice(["strs", "list", "ints"]), d), r.choice(["", "(', ')", "(d='-')"]))),
            ("filter.join_attribute", lambda: "(rows|join(',', attribute=%s))" % r.choice(["'k'", "'w'", "'zz'"])),
            ("filter.replace", lambda: "(%s)|replace(%s, %s%s)" % (self.e(r.choice(["str", "any"]), d), self.e("str", 0), self.e("str", 0), r.choice(["", ", 1", ", count=2"]))),
            ("filter.trim", lambda: "(%s)|trim%s" % (self.e(r.choice(["str", "any"]), d), r.choice(["", "(' a')", "(chars='x')"]))),
            ("filter.indent", lambda: "(%s)|indent%s" % (s(), r.choice(["", "(2)", "(2, true)", "('> ', blank=true)", "(first=true, width=1)"]))),
            ("filter.wordwrap", lambda: "(%s)|wordwrap(%s)" % (self.prose(), r.choice(["9", "20", "12, false", "6, true, '|'", "10, break_on_hyphens=false", "7, false, none, false", "1", "0", "15, break_on_hyphens=1"]))),
            ("filter.pprint", lambda: "(%s)|pprint" % r.choice([self.e("any", d), self.e("dict", d), self.prose(), "[%s, %s, tools]" % (self.prose(), self.e("list", 1)), "{'text': %s, 'a': messages, 1: rows}" % self.prose(), "[{'k': %s}, (%s,)]" % (self.prose(), self.prose())])),
            ("filter.truncate", lambda: "(%s)|truncate(%s)" % (s(), r.choice(["5", "8, true", "4, false, '..', 0", "9, end='', leeway=0", "2"]))),
            ("filter.center", lambda: "(%s)|center%s" % (s(), r.choice(["", "(12)"]))),
            ("filter.format", lambda: "%s|format(%s, %s)" % (self.quote(r.choice(["%s %s", "%d%s", "%s", "%5s|%-5s"])), self.e("any", d), self.e("int", 0))),
            ("filter.format_named", lambda: "'%%(a)s-%%(b)d'|format(a=%s, b=%s)" % (self.e("any", d), self.e("int", 0))),
            ("filter.safe", lambda: "(%s)|safe" % s()),
            ("markup.add", lambda: "((%s|safe) + %s)" % (s(), s())),
            ("markup.radd", lambda: "(%s + (%s|e))" % (s(), s())),
            ("markup.method", lambda: "(%s|e).%s" % (s(), r.choice(["upper()", "replace('&', '<')", "split('a')", "join(['<', 'x'|safe])", "center(20)", "strip()", "partition('&')", "format('<')", "title()", "splitlines()"]))),
            ("markup.mod", lambda: "('<%%s>'|safe) %% %s" % s()),
            ("filter.urlencode", lambda: "(%s)|urlencode" % self.e(r.choice(["str", "dict", "any"]), d)),
            ("filter.xmlattr", lambda: "(%s)|xmlattr" % self.e("dict", d)),
            ("filter.filesizeformat", lambda: "(%s)|filesizeformat%s" % (self.e("int", d), r.choice(["", "(true)"]))),
            ("filter.reverse_str", lambda: "(%s)|reverse" % s()),
            ("global.strftime_now", lambda: "strftime_now(%s)" % self.quote(r.choice(["%Y-%m-%d", "%d %b %Y", "%H:%M:%S %j %A", "%-d %B %y %p%%", "%f", "", "é %u"]))),
            ("expr.loop_str", lambda: "loop.%s" % r.choice(["index", "index0", "first", "last", "length", "revindex", "revindex0", "depth", "depth0", "previtem", "nextitem"]) if self.loops else "'x'"),
            ("loop.cycle", lambda: "loop.cycle('a', 'b')" if self.loops else "'y'"),
            ("loop.changed", lambda: "loop.changed(%s)" % self.e("any", 0) if self.loops else "'z'"),
            ("expr.repr", lambda: "((%s)|string)" % self.e(r.choice(["list", "dict", "strs"]), d)),
        ]
        table += [("filter." + f, lambda f=f: "(%s)|%s" % (self.e(r.choice(["str", "str", "any"]), d), f)) for f in ("upper", "lower", "capitalize", "title", "escape", "e", "forceescape")]
        if self.macros:
            table.append(("macro.call", lambda: "%s(%s)" % (r.choice(self.macros), ", ".join(
                r.choice([self.e("any", d), "a=" + self.e("any", 0), "b=1"]) if i else self.e("any", d) for i in range(r.randrange(3))))))
        text = self.pick(table)
        while "a=" in text and text.count("(a=") > 1 and text.count("a=1, a=") > 0:
            text = self.atom("str")
        return text

    def slice(self):
        r = self.rng
        bound = lambda: r.choice(["", "0", "1", "2", "-1", "-3", "5", "n", "none"])
        form = r.choice(["a:b", "a:", ":b", ":", "a:b:c", "::c", "a::c", ":b:c"])
        self.use("slice." + form)
        text = ""
        for c in form:
            text += ":" if c == ":" else r.choice(["1", "-1", "2", "-2", "0", "none"]) if c == "c" else (bound() or "1")
        return text

    def e_ints(self, d):
        r = self.rng
        return self.pick([
            ("global.range", lambda: "range(%s)" % ", ".join(r.choice(["n", "0", "1", "5", "-2", "12", "3", "none", "b"]) for _ in range(r.randrange(1, 4)))),
            ("slice.list", lambda: "%s[%s]" % (self.e("ints", d), self.slice())),
            ("expr.list", lambda: "[%s, %s]" % (self.e("int", d), self.e("int", d))),
            ("op.add_list", lambda: "(%s + %s)" % (self.e("ints", d), self.e("ints", d))),
            ("op.mul_list", lambda: "(ints * %s)" % r.choice(["2", "0", "n"])),
            ("filter.list", lambda: "(%s)|list" % self.e("ints", d)),
            ("filter.sort", lambda: "(%s)|sort%s" % (self.e("ints", d), r.choice(["", "(true)", "(reverse=true)"]))),
            ("filter.unique", lambda: "(%s)|unique|list" % self.e("ints", d)),
            ("filter.map_abs", lambda: "(%s)|map('abs')|list" % self.e("ints", d)),
            ("filter.map_attribute", lambda: "(rows|map(attribute='v')|list)"),
            ("filter.select_test", lambda: "(%s)|select(%s)|list" % (self.e("ints", d), r.choice(["'odd'", "'>', 1", "'even'", "'divisibleby', 2", "'defined'"]))),
            ("filter.reject_test", lambda: "(%s)|reject('%s')|list" % (self.e("ints", d), r.choice(["odd", "even", "none"]))),
        ])

    def e_strs(self, d):
        r = self.rng
        s = lambda: self.e("str", d)
        return self.pick([
            ("str.split", lambda: "%s.split(%s)" % (s(), r.choice(["", "','", "' '", "none, 1", "'b', 1", "sep='a', maxsplit=1", "'</think>'", "''"]))),
            ("str.rsplit", lambda: "%s.rsplit(%s)" % (s(), r.choice(["", "','", "none, 1", "'X', 1"]))),
            ("str.splitlines", lambda: "%s.splitlines(%s)" % (s(), r.choice(["", "true", "keepends=true"]))),
            ("str.partition", lambda: "%s.partition(%s)" % (s(), r.choice(["','", "' '", "'zz'"]))),
            ("str.rpartition", lambda: "%s.rpartition(%s)" % (s(), r.choice(["','", "' '", "'b'"]))),
            ("filter.sort_strs", lambda: "(%s)|sort%s" % (self.e("strs", d), r.choice(["", "(case_sensitive=true)", "(true)"]))),
            ("filter.unique_strs", lambda: "(%s)|unique%s|list" % (self.e("strs", d), r.choice(["", "(true)"]))),
            ("filter.map", lambda: "(%s)|map(%s)|list" % (self.e("strs", d), r.choice(["'upper'", "'trim'", "'length'", "'replace', 'a', 'b'", "'default', 'x'", "'int'", "'tojson'"]))),
            ("filter.map_default", lambda: "(rows|map(attribute='zz', default='q')|list)"),
            ("filter.select", lambda: "(%s)|select|list" % self.e("strs", d)),
            ("filter.reject", lambda: "(%s)|reject|list" % self.e("strs", d)),
            ("filter.list_str", lambda: "(%s)|list" % s()),
            ("expr.list_str", lambda: "[%s, %s]" % (s(), s())),
        ])

    def e_list(self, d):
        r = self.rng
        return self.pick([
            ("expr.list_any", lambda: "[%s]" % ", ".join(self.e("any", d) for _ in range(r.randrange(4)))),
            ("expr.tuple", lambda: "(%s, %s)" % (self.e("any", d), self.e("any", d))),
            ("slice.any", lambda: "%s[%s]" % (self.e("list", d), self.slice())),
            ("dict.items", lambda: "%s.items()|list" % self.e("dict", d)),
            ("dict.items_raw", lambda: "%s.items()" % self.e("dict", d)),
            ("dict.keys", lambda: "%s.keys()" % self.e("dict", d)),
            ("dict.values", lambda: "%s.values()" % self.e("dict", d)),
            ("filter.items", lambda: "(%s)|items|list" % self.e(r.choice(["dict", "any"]), d)),
            ("filter.dictsort", lambda: "(%s)|dictsort%s" % (self.e("dict", d), r.choice(["", "(true)", "(by='value')", "(false, 'key', true)"]))),
            ("filter.selectattr", lambda: "(%s)|selectattr(%s)|list" % (r.choice(["messages", "rows", "rows"]), r.choice(["'content'", "'v', 'odd'", "'role', 'equalto', 'user'", "'k', 'in', ['a', 'b']", "'w', 'string'", "'w', 'defined'"]))),
            ("filter.rejectattr", lambda: "(%s)|rejectattr(%s)|list" % (r.choice(["messages", "rows"]), r.choice(["'tool_calls'", "'v', 'odd'", "'role', '==', 'user'", "'w', 'none'"]))),
            ("filter.groupby", lambda: "(rows|groupby(%s))" % r.choice(["'k'", "'v'", "attribute='k', case_sensitive=true", "'zz', default=1"])),
            ("filter.batch", lambda: "(%s)|batch(%s)|list" % (self.e("list", d), r.choice(["2", "3", "2, 'x'"]))),
            ("filter.slice", lambda: "(%s)|slice(%s)|list" % (self.e("list", d), r.choice(["2", "3", "2, 'x'"]))),
            ("filter.reverse", lambda: "(%s)|reverse|list" % self.e("list", d)),
            ("filter.sort_attribute", lambda: "(rows|sort(attribute=%s))" % r.choice(["'k'", "'v'", "'k,v'", "'v', reverse=true", "'w'"])),
            ("filter.sort_any", lambda: "(%s)|sort" % self.e("list", d)),
            ("list.copy", lambda: "%s.copy()" % self.e("ints", 0)),
            ("op.add_lists", lambda: "(%s + %s)" % (self.e("list", d), self.e("list", d))),
            ("filter.map_filter", lambda: "(%s)|map('string')|list" % self.e("list", d)),
        ])

    def e_dict(self, d):
        r = self.rng
        return self.pick([
            ("expr.dict", lambda: "{%s}" % ", ".join("%s: %s" % (self.e(r.choice(["str", "str", "int"]), 0), self.e("any", d)) for _ in range(r.randrange(4)))),
            ("global.dict", lambda: "dict(%s)" % r.choice(["a=1", "d", "d, b=2", "[('x', 1)]", "[[1, 2]]", ""])),
            ("dict.copy", lambda: "%s.copy()" % self.e("dict", d)),
            ("expr.index_dict", lambda: "%s[%s]" % (r.choice(["messages", "rows"]), r.choice(["0", "-1", "1"]))),
        ])

    # statements
    def tag(self, text):
        r = self.rng
        left, right = r.choice(["", "", "", "-", "+"]), r.choice(["", "", "", "-", "+"])
        if left == "+":
            self.use("space.plus")
        if left == "-":
            self.use("space.minus")
        return "{%" + left + " " + text + " " + right + "%}"

    def output(self, text):
        r = self.rng
        return "{{" + r.choice(["", "", "-"]) + " " + text + " " + r.choice(["", "", "-"]) + "}}"

    def text(self):
        return self.rng.choice(["text", "\n", "  \n", "  ", "<|im_start|>", " a \n\n", "é世", "\n    ", "{ x }", "%} ", "\r\n", "\t", "# x"])

    def body(self, d, n=None):
        return "".join(self.statement(d) for _ in range(n or self.rng.randrange(1, 4)))

    def scoped(self, make):
        names = {k: list(v) for k, v in self.names.items()}
        macros = list(self.macros)
        text = make()
        self.names, self.macros = names, macros
        return text

    def set_name(self):
        kind = self.rng.choice(["str", "int", "list", "dict", "any", "bool", "real", "strs", "ints"])
        name = self.rng.choice(["v1", "v2", "v3", "s", "n", "role"])
        value_text = self.e(kind, 3)
        self.names[kind].append(name)
        return self.tag("set %s = %s" % (name, value_text))

    def for_loop(self, d):
        def make():
            form = self.rng.choice(["plain", "items", "filter", "else", "recursive", "messages", "unpack"])
            self.use("for." + form)
            self.loops += 1
            if form == "items":
                head, end = "for k, v in %s.items()" % self.e("dict", 2), ""
                self.names["str"].append("k")
                self.names["any"].append("v")
            elif form == "unpack":
                head, end = "for i, (j, k) in [[1, [2, 'x']], [3, (4, 'y')]]", ""
                self.names["int"] += ["i", "j"]
            elif form == "messages":
                head, end = "for message in messages", ""
                self.names["dict"].append("message")
                self.names["any"].append("message.content")
                self.names["str"].append("message.role")
            elif form == "filter":
                self.names["any"].append("item")
                head, end = "for item in %s if %s" % (self.e("list", 2), self.e("bool", 1)), ""
            elif form == "recursive":
                self.names["any"].append("item")
                head = "for item in %s recursive" % self.rng.choice(["[1, [2, [3, 4]], 5]", "[[], [[1]], 2]"])
                again = self.output("loop(item)") if self.rng.random() < 0.8 else ""
                inner = "{% if item is iterable and item is not string %}" + again + "{% else %}" + self.body(d - 1) + "{% endif %}" + self.body(d - 1, 1)
                self.loops -= 1
                return self.tag(head) + inner + self.tag("endfor")
            else:
                self.names["any"].append("item")
                head, end = "for item in %s" % self.e("list", 2), ""
                if form == "else":
                    end = self.tag("else") + self.body(d - 1, 1)
            inner = self.body(d - 1)
            if self.rng.random() < 0.2:
                word = self.rng.choice(["break", "continue"])
                self.use("loop." + word)
                jump = self.tag("if " + self.e("bool", 1)) + self.tag(word) + self.tag("endif")
                inner = self.rng.choice([inner + jump + self.body(d - 1, 1), jump + inner, "{% set cap %}x" + jump + "{% endset %}" + inner, "{% with q = 1 %}" + jump + "{% endwith %}" + inner])
            self.loops -= 1
            return self.tag(head) + inner + end + self.tag("endfor")
        return self.scoped(make)

    def if_block(self, d):
        text = self.tag("if " + self.e("bool", 3)) + self.body(d - 1)
        for _ in range(self.rng.randrange(2)):
            self.use("stmt.elif")
            text += self.tag("elif " + self.e("bool", 2)) + self.body(d - 1, 1)
        if self.rng.random() < 0.5:
            self.use("stmt.else")
            text += self.tag("else") + self.body(d - 1, 1)
        return text + self.tag("endif")

    def macro(self, d):
        name = self.rng.choice(["m1", "m2", "m3"])
        def make():
            self.loops, loops = 0, self.loops
            self.names["any"] += ["a", "b"]
            special = self.rng.choice(["", "", "{{ varargs }}", "{{ kwargs }}", "{{ caller() if caller }}", "{{ caller(1) if caller else 'none' }}"])
            if special:
                self.use("macro." + special.strip("{} ").split("(")[0])
            self.macros = [m for m in self.macros if m != name]
            head = "macro %s(%s)" % (name, self.rng.choice(["a, b=2", "a='x', b=a", "a, b", "", "a=none"]))
            text = self.tag(head) + self.body(d - 1) + special + self.tag("endmacro")
            self.loops = loops
            return text
        text = self.scoped(make)
        if name not in self.macros:
            self.macros.append(name)
        return text

    def call_block(self, d):
        if not self.macros:
            return self.macro(d)
        def make():
            self.loops, loops = 0, self.loops
            text = self.tag("call%s %s(%s)" % (self.rng.choice(["", "(p)", "(p=1)"]), self.rng.choice(self.macros), self.rng.choice(["", "1", "a=s", "*[1]", "**{'a': 2}"])))
            text += self.body(d - 1) + self.tag("endcall")
            self.loops = loops
            return text
        return self.scoped(make)

    def namespace(self):
        r = self.rng
        self.use("stmt.set_namespace")
        text = self.tag("set ns = namespace(%s)" % r.choice(["n=0", "{'n': 1}, m='x'", "n=n", "[('n', 2)]"]))
        if r.random() < 0.5:
            text += "{% for q in range(3) %}" + self.tag("set ns.n = ns.n + q") + "{% endfor %}"
        else:
            text += self.tag("set ns.n, ns.z = %s, %s" % (self.e("any", 1), self.e("int", 1)))
        self.names["any"] += ["ns.n", "ns.z"]
        return text + self.output(r.choice(["ns.n", "ns.zz", "ns", "ns.n is defined"]))

    def statement(self, d):
        r = self.rng
        if d <= 0 or r.random() < 0.3:
            if r.random() < 0.35:
                return self.text()
            self.use("stmt.output")
            return self.output(self.e(r.choice(["str", "str", "any", "int", "real", "bool", "list", "dict", "strs", "ints"]), 3))

        def generation():
            self.loops, loops = 0, self.loops
            text = self.tag("generation") + self.body(d - 1) + self.tag("endgeneration")
            self.loops = loops
            return text
        return self.pick([
            ("stmt.for", lambda: self.for_loop(d)), ("stmt.if", lambda: self.if_block(d)), ("stmt.set", self.set_name),
            ("stmt.set_tuple", lambda: self.tag("set v1, v2 = %s, %s" % (self.e("any", 2), self.e("str", 2)))),
            ("stmt.set_block", lambda: self.scoped(lambda: self.tag("set v1") + self.body(d - 1) + self.tag("endset")) + self.output("v1")),
            ("stmt.set_block_filter", lambda: self.scoped(lambda: self.tag("set v2 | upper | trim") + self.body(d - 1, 1) + self.tag("endset")) + self.output("v2")),
            ("stmt.macro", lambda: self.macro(d)), ("stmt.call", lambda: self.call_block(d)),
            ("stmt.filter_block", lambda: self.scoped(lambda: self.tag("filter %s" % r.choice(["upper", "trim|lower", "replace('a', 'b')", "indent(2)"])) + self.body(d - 1) + self.tag("endfilter"))),
            ("stmt.with", lambda: self.scoped(lambda: self.tag("with %s" % r.choice(["a = 1", "a = s, b = a", ""])) + self.body(d - 1) + self.tag("endwith"))),
            ("stmt.generation", lambda: self.scoped(generation)),
            ("stmt.print", lambda: self.tag("print %s, %s" % (self.e("any", 1), self.e("int", 1)))),
            ("stmt.raw", lambda: self.tag("raw").replace("+%}", "%}") + r.choice(["{{ x }}", " {% if %} ", "\n a \n"]) + self.tag("endraw")),
            ("stmt.comment", lambda: r.choice(["{# c #}", "  {#- c -#} \n", "{#+ {{ x }} +#}", "{# a\n b #}\n"])),
            ("stmt.namespace", self.namespace),
            ("global.cycler", lambda: "{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.current }}{{ c.next() }}{{ c.next() }}{% set _ = c.reset() %}{{ c.current }}"),
            ("global.joiner", lambda: "{% set j = joiner(" + r.choice(["", "'|'"]) + ") %}{{ j() }}{{ j() }}{{ j() }}"),
            ("global.raise_exception", lambda: "{% if " + self.e("bool", 1) + " and b %}{{ raise_exception(" + self.e("str", 1) + ") }}{% endif %}" if r.random() < 0.3 else ""),
        ])


def make(rng, count):
    maker = Maker(rng, count)
    return maker.body(3, rng.randrange(1, 6)) + rng.choice(["", "\n", "end"])


def comparable(kind, text):
    text = text.lower()
    return kind != "skip" and not any(sign in text for sign in ("at 0x", "at%200x", "built-in", "builtin", "<generator", "< generator"))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("tool")
    p.add_argument("--count", type=int, default=200)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--compiled", nargs=2)
    p.add_argument("--show", type=int, default=5)
    args = p.parse_args()
    rng, count, kinds, differ, skipped = random.Random(args.seed), collections.Counter(), collections.Counter(), 0, 0
    listed = 0
    batch, done = [], 0
    while done < args.count:
        batch = []
        while len(batch) < min(500, args.count - done):
            source, case = make(rng, count), variables(rng)
            batch.append((source, case, reference(source, case)))
        done += len(batch)
        sent = [(s.encode(), json.dumps(c).encode()) for s, c, _ in batch]
        sides = [("", batch, records.answers([args.tool, NOW], sent))]
        if args.compiled:
            import compiled
            good = [i for i, (k, _) in enumerate(sides[0][2]) if k != "refused"]
            program = compiled.build(args.tool, args.compiled[1], args.compiled[0], [sent[i][0] for i in good])
            sides.append(("compiled: ", [batch[i] for i in good], records.answers([program, NOW], [(b"", sent[i][1]) for i in good])))
        for side, items, got in sides:
            for (source, case, (kind, text)), (got_kind, got_text) in zip(items, got):
                got_text = got_text.decode("utf-8", "replace")
                if not comparable(kind, text) or not comparable(got_kind, got_text):
                    skipped += 1
                    continue
                kinds[kind] += 1
                if kind == got_kind and (kind == "refused" or text == got_text):
                    continue
                if kind == "ok" and got_text == UNFOLDED:
                    listed += 1
                    continue
                differ += 1
                if differ <= args.show:
                    print("---- %sdifference %d\n%s\n---- case %s\n---- python: %s %r\n---- ggcc:   %s %r" % (side, differ, source, json.dumps(case), kind, text[:1500], got_kind, got_text[:1500]))
    for name in sorted(count):
        print("%-28s %d" % (name, count[name]))
    rare = [n for n in count if count[n] < 20]
    print("%d templates: %s; %d not comparable (addresses); %d listed; %d differ"
          % (done, ", ".join("%d %s" % (n, k) for k, n in kinds.most_common()), skipped, listed, differ))
    if rare and args.count >= 5000:
        print("used less than 20 times: " + ", ".join(rare))
    sys.exit(differ > 0 or (args.count >= 5000 and bool(rare)))


if __name__ == "__main__":
    main()
