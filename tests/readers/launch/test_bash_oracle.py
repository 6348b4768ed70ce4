"""The words that are read are those that bash itself makes of random scripts, which hold nothing but expansions."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlsize.errors import InputError
from rlsize.readers.launch.bash import read_script

BASH = shutil.which("bash")
pytestmark = pytest.mark.skipif(BASH is None, reason="needs bash to compare with")

HARNESS = """set -f
show() { for word; do printf '%s\\0' "$word"; done; printf '\\1\\0'; }
"""

scalars = st.sampled_from(["a", "b", "c"])
arrays = st.sampled_from(["r", "s"])
plain = st.text(alphabet="abxyz019._/=,-:+%@é", min_size=1, max_size=5).filter(lambda text: text[0] not in "-+=")
spaced = st.text(alphabet="ab xy 01./=\n\t", max_size=8)
patterns = st.sampled_from(["a", "*a", "a*", "*.", ".*", "?", "[ab]", "[!a]*", "'*'", "*/", "/*", "x?", '"a"'])


def arithmetic(depth: int = 2) -> st.SearchStrategy[str]:
    """Expressions over small numbers."""
    leaf = st.one_of(st.integers(0, 99).map(str), st.sampled_from(["n", "m", "0x1f", "010", "n++", "(m+=2)", "2#101"]))
    if depth == 0:
        return leaf
    inner = arithmetic(depth - 1)
    operators = st.sampled_from(
        ["+", "-", "*", "<<", "&", "|", "^", "<", "<=", "==", "&&", "||", "!=", ",", "/ 7 +", "%3-"]
    )
    return st.one_of(
        leaf,
        st.tuples(inner, operators, inner).map(" ".join),
        inner.map(lambda text: f"({text})"),
        st.tuples(st.sampled_from(["-", "!", "~", "+"]), inner).map(lambda pair: f"{pair[0]}({pair[1]})"),
        st.tuples(inner, inner, inner).map(lambda parts: f"({parts[0]}) ? ({parts[1]}) : ({parts[2]})"),
        st.tuples(leaf, st.integers(0, 5)).map(lambda pair: f"({pair[0]}) ** {pair[1]}"),
    )


def parameters() -> st.SearchStrategy[str]:
    """`$X` and what stands in braces after a dollar."""
    simple = st.one_of(
        scalars.map(lambda name: f"${name}"),
        scalars.map(lambda name: f"${{{name}}}"),
        scalars.map(lambda name: f"${{#{name}}}"),
        st.sampled_from(
            ["$#", "$1", "$2", "${3:-none}", "${#r[@]}", "${r[0]}", "${s[1]}", "${r[-1]}", "${unset-}", "${!r[@]}"]
        ),
    )
    defaults = st.tuples(
        st.sampled_from(["a", "e", "unset", "r[1]", "1"]), st.sampled_from([":-", "-", ":+", "+"]), plain
    )
    cut = st.tuples(scalars, st.sampled_from(["%", "%%", "#", "##"]), patterns)
    sliced = st.tuples(scalars, st.integers(0, 4), st.integers(0, 4)).map(
        lambda found: f"${{{found[0]}:{found[1]}:{found[2]}}}"
    )
    replaced = st.tuples(
        scalars, st.sampled_from(["/", "//", "/#", "/%"]), patterns, plain.map(lambda text: text.replace("/", ""))
    )
    cased = st.tuples(scalars, st.sampled_from(["^^", ",,", "^", ","])).map(lambda found: f"${{{''.join(found)}}}")
    return st.one_of(
        simple,
        defaults.map(lambda parts: f"${{{''.join(parts)}}}"),
        cut.map(lambda parts: f"${{{''.join(parts)}}}"),
        replaced.map(lambda parts: f"${{{parts[0]}{parts[1]}{parts[2]}/{parts[3]}}}"),
        sliced,
        cased,
        arithmetic().map(lambda text: f"$(({text}))"),
        st.sampled_from(
            [
                "$(echo a b)",
                "$(printf '%s-' $r)",
                "`echo x y`",
                "$(seq 1 3)",
                "$(seq -s, 0 2)",
                "$(basename /u/v.sh .sh)",
            ]
        ),
        st.sampled_from(
            ["$(echo $a | tr , '\\n' | wc -l)", "$(expr 3 + 4)", "$(cat <<'E'\nit's (\nE\n)", "$(dirname /u/v/w)"]
        ),
    )


whole = st.one_of(
    st.sampled_from(
        ['"${r[@]}"', "${s[@]}", '"${r[*]}"', "${r[*]}", '"$@"', "$@", '"$*"', "$*", '"${@:2}"', '"${r[@]:1:2}"']
    ),
    st.sampled_from(
        ['"${r[@]%a}"', '"${r[@]/a/Z}"', '"x${r[@]}y"', 'x"$@"y', '"${unset[@]+z}"', '"${none[@]}"', '""', "''"]
    ),
    st.sampled_from(
        ["{1..3}", "{a,b}", "x{1,2}y", "p.{q,r}_n=4", "{3..1}", "{01..03}", "{a..c}", "{x}", "{a,{b,c}}d", "{1..7..3}"]
    ),
)
pieces = st.one_of(
    plain,
    plain.map(lambda text: f"'{text}'"),
    spaced.map(lambda text: f"'{text}'"),
    st.tuples(spaced.map(lambda text: text.replace("\n", " ")), parameters()).map(lambda pair: f'"{pair[0]}{pair[1]}"'),
    parameters(),
    st.sampled_from(["\\$", "\\ ", "\\'", '"\\""', "$'a\\tb'", "$'\\x41'", '"\\a"', "\\\\", "'\"'", '"\'"', "\\é"]),
    whole,
)
words = st.lists(pieces, min_size=1, max_size=3).map("".join).filter(lambda text: not text.startswith(("=", "#", "~")))
unbraced = words.filter(lambda text: "{" not in text.replace("${", ""))


def statements() -> st.SearchStrategy[str]:
    """Statements that change variables."""
    listed = st.lists(words, max_size=3).map(" ".join)
    assign = st.tuples(scalars, st.sampled_from(["=", "+="]), unbraced).map("".join)
    array = st.tuples(arrays, st.sampled_from(["=", "+="]), listed).map(
        lambda parts: f"{parts[0]}{parts[1]}({parts[2]})"
    )
    element = st.tuples(arrays, st.integers(0, 3), unbraced).map(lambda parts: f"{parts[0]}[{parts[1]}]={parts[2]}")
    condition = st.one_of(
        scalars.map(lambda name: f'[ -z "${name}" ]'),
        st.tuples(scalars, plain).map(lambda pair: f'[ "${pair[0]}" = "{pair[1]}" ]'),
        st.tuples(scalars, patterns).map(lambda pair: f"[[ ${pair[0]} == {pair[1]} ]]"),
        arithmetic(1).map(lambda text: f"(( {text} ))"),
        arithmetic(1).map(lambda text: f"[ $(({text})) -gt 3 ]"),
        st.sampled_from(
            ["[[ -n $a && $b != x ]]", "! false", "true", "[ ${#r[@]} -ge 2 ] || false", "[[ ! ( $a == b || -z $c ) ]]"]
        ),
    )
    body = st.one_of(assign, array)
    return st.one_of(
        body,
        element,
        listed.map(lambda text: f"set -- {text}"),
        st.just("shift"),
        st.tuples(condition, body, body).map(lambda parts: f"if {parts[0]}; then {parts[1]}; else {parts[2]}; fi"),
        st.tuples(condition, body).map(" && ".join),
        st.tuples(words, listed, unbraced).map(
            lambda parts: f'for c in {parts[0]} {parts[1]}; do r+=("$c" {parts[2]}); done'
        ),
        st.tuples(patterns, body, body).map(lambda parts: f"case $a in {parts[0]}) {parts[1]};; *) {parts[2]};; esac"),
        st.tuples(listed, body).map(lambda parts: f"f() {{ local a=$1; {parts[1]}; }}\nf {parts[0]}"),
        st.tuples(listed, body).map(lambda parts: f"( {parts[1]}; show sub {parts[0]} )"),
        st.tuples(scalars, listed).map(lambda parts: f"{parts[0]}=1 show {parts[1]}"),
        st.sampled_from(
            [
                "IFS=, read -ra r <<< 'p,q,r s'",
                "read -r a b <<< 'one two  three'",
                "read -r -d '' a <<E\n x $b \"y\"\nz\nE",
                "mapfile -t s <<E\nl $a\n\nk=1\nE",
                "for ((n = 0; n < 3; n++)); do s+=(k$n); done",
                ': "${b:=x}" "${new:=y z}"',
                "declare -i n=3+4; n+=2",
                "unset 'r[0]' a",
                "while (( n-- > 0 )); do r+=(w$n); [ $n -eq 1 ] && break; done",
                "IFS=,; b=1,2,,3; show $b; IFS=$' \\t\\n'",
                "let n=n+1 m=2",
            ]
        ),
    )


scripts = st.tuples(st.lists(statements(), max_size=6), st.lists(words, min_size=1, max_size=4)).map(
    lambda parts: "\n".join(
        [
            "a=x.a/b.sh b='one two' c= e= n=5 m=2; r=(a1 'b c' ba) s=()",
            "set -- p 'q r'",
            *parts[0],
            f"show {' '.join(parts[1])}",
            "",
        ]
    )
)


def made_by_bash(script: str) -> list[list[str]]:
    """The words of each call, as bash hands them over."""
    done = subprocess.run(
        [BASH or "bash", "--norc", "--noprofile", "-c", HARNESS + script], capture_output=True, check=False, timeout=20
    )
    calls = done.stdout.decode("utf-8", "replace").split("\1\0")
    return [call.split("\0")[:-1] for call in calls[:-1]]


@pytest.mark.long
@settings(max_examples=300, deadline=None)
@given(scripts)
def test_words_are_those_that_bash_makes(script: str) -> None:
    """Whatever is assigned, quoted, split and expanded: each command's words are bash's, or are said to be unknown."""
    try:
        read = read_script(script, "x.sh", lambda _: None)
    except InputError as error:
        assert "more than 10000 words" in str(error)  # loops that double an array
        return
    ours = [[word.text for word in program.words[1:]] for program in read.programs]
    told = not any(word.unknown for program in read.programs for word in program.words)
    if told and not read.notes:
        assert ours == made_by_bash(script)
