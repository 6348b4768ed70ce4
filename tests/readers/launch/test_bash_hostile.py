"""A script may be anything: nothing of it is run, nothing grows without end, and secrets stay where they are."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import NIGHTLY

from rlsize.errors import InputError
from rlsize.facts.launch import Script
from rlsize.readers.launch.bash import read_script


def outcome(text: str) -> Script | InputError:
    """What is read, or the fault."""
    try:
        return read_script(text, "x.sh", lambda path: "touch CANARY; source 1" + path)
    except InputError as error:
        return error


@pytest.mark.parametrize(
    "text",
    [
        "X=$(touch CANARY)\npython $X",
        "X=`touch CANARY`",
        'eval "touch CANARY"',
        "python <(touch CANARY) >(touch CANARY)",
        "bash -c 'touch CANARY'",
        "source evil.sh",
        "trap 'touch CANARY' EXIT",
        "touch CANARY > CANARY",
        "cat > CANARY <<E\nx\nE",
        "echo $((a[$(touch CANARY)]))",
        "f() { touch CANARY; }; f; $(f)",
        "${X:=$(touch CANARY)} ${X@P}",
    ],
)
def test_nothing_is_ever_run(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No command runs, no file is written, no process is started."""
    monkeypatch.chdir(tmp_path)
    for name in ("fork", "posix_spawn", "execve"):
        monkeypatch.setattr(os, name, lambda *_: pytest.fail("a process"))
    outcome(text)
    assert list(tmp_path.iterdir()) == []


HOSTILE = {
    "a line of 4 MB": "python x " + "a" * 4_000_000,
    "a million words": "python x " + "a b " * 1_000_000,
    "nested substitutions": "x " + "$(" * 100_000 + "x" + ")" * 100_000,
    "substitutions without end": "$(" * 100_000,
    "nested parameters": "x " + "${a:-" * 50_000 + "x" + "}" * 50_000,
    "a value doubled": "X=aa\n" + "X=$X$X\n" * 60 + "python $X",
    "an array doubled": "A=(a)\n" + 'A+=("${A[@]}")\n' * 60,
    "a long range": "python {1..100000000}",
    "products of braces": "python " + "{a,b}" * 40,
    "open braces": "python " + "{a," * 100_000,
    "a loop without end": "for ((;;)); do python x; done",
    "nested loops": "for i in {1..9000}; do for j in {1..9000}; do python x; done; done",
    "a long while": "i=0; while [ $i -lt 100000000 ]; do i=$((i+1)); python x; done",
    "functions that double": "f() { f; f; }; f",
    "variables in circles": "a=b b=a; x $((a)) ${!a}",
    "deep arithmetic": "x $((" + "(" * 100_000 + "1" + ")" * 100_000 + "))",
    "great powers": "x $((2**99999999999999999999**99999999))",
    "quotes": '"' * 200_001,
    "heredocs": "cat <<E\n" * 30_000,
    "deep ifs": "if true; then " * 5000 + "x;" + "fi;" * 5000,
    "deep parentheses": "(" * 50_000,
    "a long list": "a && " * 20_000 + "b",
    "a pattern of stars": "a=" + "a" * 4000 + "\nx ${a%%" + "*a" * 50 + "b}",
    "a regular expression": "a=" + "a" * 250 + "\n[[ $a =~ (a+)+$ ]] && x",
    "files without end": "source a",
    "a great index": "A=(a)\nA[999999999]=b\nx ${A[@]}",
    "dashes": "—a " * 300_000,
    "no text at all": "\0\1\2" * 5000,
}


@pytest.mark.long(by_day=6)
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_scripts_end_soon_and_in_a_sentence(text: str) -> None:
    """Whatever a script asks for, it is read, or refused in one short sentence, in a few seconds."""
    start = time.process_time()
    found = outcome(text)
    assert time.process_time() - start < 10  # under two on an idle machine
    if isinstance(found, InputError):
        assert len(str(found)) < 300
        assert "x.sh" in str(found)


@settings(deadline=None)
@given(st.text(alphabet="ab$(){}[]\"'`\\<>|&;=#-!@*\n \t0", max_size=60))
def test_any_text_gives_a_script_or_a_fault(text: str) -> None:
    """Never another error; and places lie within the text."""
    found = outcome(text)
    if isinstance(found, Script):
        for program in found.programs:
            for word in program.words:
                if word.span.file == "x.sh":
                    assert 0 <= word.span.start <= word.span.end <= len(text.encode())
                    assert 1 <= word.span.line <= text.count("\n") + 1


WHOLE = """#!/bin/bash
#SBATCH -N 2
set -e; declare -A set=([a.b]=1 [c]='d e'); set[x.y]=2
ARGS=(--a 1 "$B" $(dirname "$0") # why
  --c=${D:-"e f"} {1..3})
case $1 in a|b) N=1 ;; *) N=$((N + 2)) ;; esac
f() { local x=$1; cat > "$x" <<-E
	n: $N
	E
}
for i in 1 2; do if [[ $i == 1 && -n $N ]]; then f y$i; fi; done | tee log
while read -r l; do python "$l"; done <<< "a"
X=1 env Y=2 srun bash -c "python t.py \\"${ARGS[@]}\\" $(seq 3)" > out 2>&1 &
"""


@pytest.mark.long
def test_a_script_that_is_cut_off_anywhere_is_read_or_refused() -> None:
    """Never another error, whatever stands open where it ends or begins."""
    for at in range(0, len(WHOLE), 1 if NIGHTLY else 3):
        outcome(WHOLE[:at])
        outcome(WHOLE[at:])
        outcome(WHOLE[:at] + WHOLE[at + 1 :])


@pytest.mark.parametrize("sign", ['"', "'"])
def test_a_quote_that_nothing_closes_is_told_with_its_line(sign: str) -> None:
    """What comes after it is one word, so keys on later lines are not read."""
    script = read_script(f"python -m x \\\n a={sign}b \\\n c=1\n", "run.sh", lambda _: None)
    assert [note for note in script.notes if "closes" in note] == [
        f"line 2: nothing closes this {sign}: it is read to the end"
    ]
    assert not read_script("python -m x a='b' c=\"d\"\n", "run.sh", lambda _: None).notes


def test_secrets_stay_out_of_notes_and_faults() -> None:
    """Values of tokens, keys and passwords are in no note, wherever they stand."""
    text = (
        "export HF_TOKEN=hf_topsecret1 WANDB_API_KEY=topsecret2\n"
        "for TOKEN in topsecret3 topsecret4; do python $TOKEN; done\n"
        'if [ "$HF_TOKEN" = topsecret5 ] && [ -z "$UNSET" ]; then exit 1; fi\n'
        "case $PASSWORD in topsecret6) ;; *) x;; esac\n"
        'X=$(curl -H "Authorization: Bearer topsecret7" host) Y=$((HF_TOKEN + 1))\n'
        "source $HF_TOKEN/a.sh; python x\n"
        ") API_KEY=topsecret8 ;;\n"
    )
    script = outcome(text)
    assert isinstance(script, Script)
    assert script.notes
    assert "topsecret" not in " ".join(script.notes)
    assert "topsecret" not in " ".join(
        name for program in script.programs for word in program.words for name in word.unknown
    )
