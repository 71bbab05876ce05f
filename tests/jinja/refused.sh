#!/bin/bash
# Templates that must not compile, each with the message: refused.sh JINJA_TOOL; compared with refused.expected.
tool=$1
while IFS= read -r template; do
    [ -n "$template" ] || continue
    printf '%b' "$template" > /dev/null
    source=$(printf '%b' "$template")
    printf '%s 2\n%s{}' "$(printf '%s' "$source" | wc -c)" "$source" | "$tool" 2026-07-26T09:05:03 | tail -n +2
    echo
done << 'END'
a\n{% if x %}\nb
{% for x in y %}{% endif %}
{{ x
{{ x }
{{ (1, 2 }}
{{ [1, 2) }}
{{ 'abc }}
{{ a b }}
{{ x | nothing_such }}
{{ x is nothing_such }}
line\n{{ text | urlize }}
{{ x | map('striptags') | list }}
{{ s.encode('utf-8') }}
{% block a %}{% endblock %}
{% include 'x' %}
{% frobnicate %}
{% break %}
{% for x in y %}{% macro m() %}{% continue %}{% endmacro %}{% endfor %}
{% for loop in y %}{% endfor %}
{% set 1 = 2 %}
{% set a.b.c = 2 %}
{% macro m(a, a) %}{% endmacro %}
{% macro m(a=1, b) %}{% endmacro %}
{% call 3 %}{% endcall %}
{{ f(a=1, a=2) }}
{{ f(a=1, 2) }}
{{ 99999999999999999999 }}
{{ x.$ }}
{{ x. }}
{# never
{% raw %} never
{{ a is b is c }}
{{ x[1:2, 3] }}
{{ lipsum() }}
{{ self.x() }}
{% }}
END
