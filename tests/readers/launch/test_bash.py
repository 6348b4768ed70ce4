"""What a shell script says is read without running it: words and their places, headers, files, notes."""

from __future__ import annotations

import pytest

from rlsize.errors import InputError
from rlsize.facts.launch import Script, Span, Word
from rlsize.readers.launch.bash import read_script


def read(text: str, files: dict[str, str] | None = None) -> Script:
    """A script in a folder of other files."""
    return read_script(text, "run.sh", (files or {}).get)


def words(text: str, files: dict[str, str] | None = None) -> list[list[str]]:
    """The words of its programs."""
    return [[word.text for word in program.words] for program in read(text, files).programs]


def written(text: str, span: Span) -> str:
    """What stands at a place."""
    return text.encode()[span.start : span.end].decode()


def test_places_are_those_of_the_bytes_as_written() -> None:
    """A word's place is its bytes, quotes and all, in lines counted from 1, whatever letters come before."""
    text = "# für é\nL=6\npython train.py \\\n  --name='ä b' --n $L\n"
    program = read(text).programs[0]
    assert [written(text, word.span) for word in program.words] == ["python", "train.py", "--name='ä b'", "--n", "$L"]
    assert [word.span.line for word in program.words] == [3, 3, 4, 4, 4]


def test_words_of_an_array_stand_where_the_array_was_written() -> None:
    """`"${ARGS[@]}"` gives each element its own place; `$OPTS` gives its words the place of the use."""
    text = 'ARGS=(a.b=1\n  c.d="2")\nOPTS="--x 1"\npython t.py "${ARGS[@]}" $OPTS\n'
    program = read(text).programs[0]
    assert [written(text, word.span) for word in program.words[2:]] == ["a.b=1", 'c.d="2"', "$OPTS", "$OPTS"]


def test_arrays_of_a_sourced_file_stand_in_that_file() -> None:
    """What a file beside the script sets is used, and its places name it."""
    files = {"models/m.sh": "# shape\nNET=(--layers 4)\n"}
    script = read('. "$(dirname "$0")/models/m.sh"\npython t.py "${NET[@]}"\n', files)
    layers = script.programs[0].words[3]
    assert layers == Word("4", Span("models/m.sh", 2, 22, 23))
    assert script.sourced == ("models/m.sh",)


@pytest.mark.parametrize(
    "folder",
    [
        '"${BASH_SOURCE%/*}"',
        '$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)',
        "${0%/*}",
        '"$(realpath "$(dirname "$0")")"',
        '"$PWD"',
        "$UNSET",
    ],
)
def test_the_folder_of_the_script_is_found(folder: str) -> None:
    """However a script asks for its own folder, files in it are read."""
    assert words(f"D={folder}\nsource $D/m.sh\npython $N\n", {"m.sh": "N=4"}) == [["python", "4"]]


def test_a_container_has_the_variables_that_it_is_given() -> None:
    """`docker run -e NAME=VALUE`; what is handed on by its name alone is what the shell has."""
    text = "export B=2\nC=3\ndocker run -e A=1 --env B -e C x bash -c 'python t.py $A $B $C'\n"
    (_, program) = read(text).programs
    assert [(word.text, word.unknown) for word in program.words[2:]] == [("1", ()), ("2", ()), ("", ("C",))]


def test_an_environment_that_is_chosen_is_no_gap() -> None:
    """It sets nothing of a training, wherever it lies."""
    text = "source .venv/bin/activate\n. $HOME/conda/etc/profile.d/conda.sh && conda activate x\nsource myactivate\n"
    assert [note.partition(" is ")[0] for note in read(text + "python t.py\n").notes] == ["line 3: myactivate"]


def test_a_missing_file_is_noted() -> None:
    """What a missing file would set is unknown."""
    script = read('source shapes/m.sh\npython t.py "${NET[@]}"\n')
    assert script.notes == ("line 1: shapes/m.sh is missing: what it sets is not known",)
    assert script.programs[0].words[2].unknown == ("NET[@]",)


def test_files_that_source_each_other_are_read_once() -> None:
    """A cycle ends with a note."""
    script = read("source a.sh\npython $A", {"a.sh": "A=1\nsource b.sh", "b.sh": "source a.sh"})
    assert [word.text for word in script.programs[0].words] == ["python", "1"]
    assert "b.sh, line 1: a.sh is not read again" in script.notes


def test_what_the_machine_would_say_is_unknown_and_named() -> None:
    """Substitutions are not run: the word holds nothing for them, and names the command without its arguments."""
    (program,) = read("N=$(nvidia-smi -L | wc -l)\npython t.py trainer.n=$N x=`date +%s` $((N * 2)) $HOME/m").programs
    assert [(word.text, word.unknown) for word in program.words[2:]] == [
        ("trainer.n=", ("$(nvidia-smi ...)",)),
        ("x=", ("`date...`",)),
        ("", ("$(nvidia-smi ...)",)),
        ("/m", ("HOME",)),
    ]


def test_counts_of_what_is_unknown_are_unknown() -> None:
    """Lines, words or fields of a variable that nobody sets cannot be counted; those of a known one can."""
    count = "| awk -F, '{print NF}'"
    assert words(f"A=0,1,2\npython $(echo $A {count}) $(echo $A | tr , ' ' | wc -w)") == [["python", "3", "3"]]
    (program,) = read(f"python $(echo $CUDA_VISIBLE_DEVICES {count}) $(echo $B | wc -w)").programs
    assert [(word.text, word.unknown) for word in program.words[1:]] == [("", ("$(echo ...)",))] * 2


def test_an_element_that_is_not_there_is_not_the_first_one() -> None:
    """`${A[1]}` of an array of one."""
    (program,) = read("A=(x)\npython ${A[0]} ${A[1]}").programs
    assert [(word.text, word.unknown) for word in program.words[1:]] == [("x", ()), ("", ("A",))]


def test_comments_within_a_command_are_no_words() -> None:
    """The idioms for a comment between continued lines give nothing."""
    assert words("python t.py `# why` \\\n  --a 1 $(: why) \\\n  --b 2") == [["python", "t.py", "--a", "1", "--b", "2"]]


def test_headers_of_a_batch_system_have_long_names_and_set_variables() -> None:
    """`-N 2` is `nodes`; Slurm's variables follow."""
    text = "#!/bin/bash\n#SBATCH -N 2 --gres=gpu:h100:8\n#SBATCH --ntasks-per-node=4\n"
    text += "srun t $SLURM_NNODES $SLURM_GPUS_ON_NODE $SLURM_NTASKS"
    script = read(text)
    assert {name: word.text for name, word in script.headers.items()} == {
        "nodes": "2",
        "gres": "gpu:h100:8",
        "ntasks-per-node": "4",
    }
    assert written(text, script.headers["nodes"].span) == "2"
    assert [word.text for word in script.programs[0].words] == ["srun", "t", "2", "8", "8"]


def test_headers_of_pbs_are_its_resources() -> None:
    """`-l select=4:ngpus=8,walltime=1` is two resources."""
    headers = read("#PBS -l select=4:ngpus=8,walltime=01:00:00\n#PBS -q gpu\npython x").headers
    assert {name: word.text for name, word in headers.items()} == {
        "select": "4:ngpus=8",
        "walltime": "01:00:00",
        "queue": "gpu",
    }


def test_files_that_a_script_writes_are_kept() -> None:
    """A heredoc with a redirection is a file; one without quotes has its variables put in."""
    script = read(
        "N=2\ncat > a.yaml <<EOF\nnodes: $N\nEOF\ncat <<'EOF' | tee b.yaml\nn: $N\nEOF\necho x=$N >> a.yaml\n"
    )
    assert {name: word.text for name, word in script.files.items()} == {
        "a.yaml": "nodes: 2\nx=2\n",
        "b.yaml": "n: $N\n",
    }
    assert script.programs == ()


def test_a_file_without_a_known_name_is_kept_under_what_its_name_hangs_on() -> None:
    """So that the word that names it can be matched."""
    script = read('c=$(mktemp)\ncat > "$c" <<E\na: 1\nE\npython t.py --config "$c"\n')
    assert script.files[script.programs[0].words[3].unknown[0]].text == "a: 1\n"


def test_variables_before_a_command_and_exported_ones_are_given_to_it() -> None:
    """Others are not; `env` is another way to write it."""
    script = read("export A=1\nB=2\nC=3 python x\nenv D=4 python y\n")
    assert [{name: word.text for name, word in program.variables.items()} for program in script.programs] == [
        {"A": "1", "C": "3"},
        {"A": "1", "D": "4"},
    ]
    assert [word.text for word in script.programs[1].words] == ["python", "y"]


@pytest.mark.parametrize("outer", ["bash -c", "srun -N1 bash -lc", "docker exec box sh -c", "ssh host"])
def test_scripts_within_scripts_are_read(outer: str) -> None:
    """A word that is a script is read too, and its words stand where they are written within the quotes."""
    text = f'N=2\n{outer} "cd /w && python t.py \\\n  --n $N --m \\"4 5\\""\n'
    program = read(text).programs[-1]
    assert [word.text for word in program.words] == ["python", "t.py", "--n", "2", "--m", "4 5"]
    assert [written(text, word.span) for word in program.words] == ["python", "t.py", "--n", "$N", "--m", '\\"4 5\\"']


def test_only_exported_variables_reach_a_script_within_single_quotes() -> None:
    """As in bash."""
    inner = read("A=1\nexport B=2\nbash -c 'python $A $B'\n").programs[0]
    assert [(word.text, word.unknown) for word in inner.words] == [("python", ()), ("", ("A",)), ("2", ())]


def test_every_turn_of_a_loop_is_read_and_noted() -> None:
    """Programs of all turns, in order."""
    script = read("for s in 1 2; do\n python t.py seed=$s\ndone\n")
    assert [program.words[2].text for program in script.programs] == ["seed=1", "seed=2"]
    assert script.notes == ("line 1: a loop over 1, 2: every turn is read, in order",)


def test_a_branch_that_hangs_on_the_outside_is_noted() -> None:
    """With nothing set from outside bash takes one branch, which is read; exit is passed over."""
    script = read('if [ -z "$CHIP" ]; then echo usage; exit 1; fi\ncase "$CHIP" in npu) N=1;; *) N=8;; esac\npython $N')
    assert [word.text for word in script.programs[0].words] == ["python", "8"]
    assert script.notes == (
        "line 1: a condition hangs on CHIP, unknown here: read as if it holds",
        "line 1: exit is passed over: whether it is reached hangs on what is unknown here",
        "line 2: a case hangs on CHIP: branch * is read",
    )


def test_machines_are_taken_to_have_nvidia_gpus() -> None:
    """`command -v nvidia-smi` succeeds and `npu-smi` does not."""
    text = "if command -v npu-smi >/dev/null 2>&1; then D=npu; elif command -v nvidia-smi; then D=cuda; fi\npython $D"
    assert words(text) == [["python", "cuda"]]


def test_nothing_after_an_exit_is_read() -> None:
    """An exit that bash would reach ends the script."""
    assert words("python a\nexit 0\npython b") == [["python", "a"]]


@pytest.mark.parametrize(
    "text",
    [
        "python t.py \\\n  --a 1 \\ \n  --b 2",
        "python t.py \\\n  --a 1 \\\n  # why\n  --b 2",
        "python t.py \\\n  --a 1 \\\n\n  --b 2",
        "python t.py \\\n  --a 1 \\  # why\n  --b 2",
        "python t.py --a 1\n  --b 2",
        "python t.py \\\n  —a 1 \\\n  –b 2",
        "\ufeffpython t.py \\\n\t--a 1 \\\n\t--b 2",
    ],
)
def test_broken_lines_are_read_as_they_were_meant(text: str) -> None:
    """Continuations that pasting broke go on, and typographic dashes are dashes; places are those of the file."""
    script = read(text)
    assert [word.text for word in script.programs[0].words] == ["python", "t.py", "--a", "1", "--b", "2"]
    assert len(script.programs) == 1
    assert written(text, script.programs[0].words[5].span) == "2"
    assert script.notes or text.startswith("\ufeff")


def test_windows_line_endings_are_line_endings() -> None:
    """Words and files hold no carriage return, and places count it."""
    text = 'A=(x\r\n y)\r\ncat > f <<EOF\r\na\r\nEOF\r\npython t.py \\\r\n  "${A[@]}" --b 2\r\n'
    script = read(text)
    assert [word.text for word in script.programs[0].words] == ["python", "t.py", "x", "y", "--b", "2"]
    assert written(text, script.programs[0].words[5].span) == "2"
    assert script.files["f"].text == "a\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("--a 1 \\\n--b 2 \\\n", ["--a", "1", "--b", "2"]),
        ("--a 1\n--b 2\n", ["--a", "1", "--b", "2"]),
        ("a.b=1 \\\n c.d=2", ["a.b=1", "c.d=2"]),
        ("a.b=1\nc.d=2\n", ["a.b=1", "c.d=2"]),
        ("ARGS=(\n --a 1 # why\n --b 2\n)", ["--a", "1", "--b", "2"]),
        ('OPTS="--a 1 --b 2"', ["--a", "1", "--b", "2"]),
        ("batch_size=4\nmicro=2\n", ["batch_size=4", "micro=2"]),
    ],
)
def test_a_part_without_a_command_is_a_program_of_its_options(text: str, expected: list[str]) -> None:
    """Pasted options, key=value lines or an array count."""
    assert words(text) == [expected]


def test_escaped_separators_stay_words() -> None:
    r"""`\&\&` and "&&" are words for the program that is started."""
    assert words('python mason.py -- source a.sh \\&\\& python b "&&" c') == [
        ["python", "mason.py", "--", "source", "a.sh", "&&", "python", "b", "&&", "c"]
    ]


def test_a_program_on_standard_input_is_given_and_noted() -> None:
    """Its text is a variable of the program."""
    script = read("python - <<EOF\nprint(1)\nEOF\n")
    assert script.programs[0].variables["/dev/stdin"].text == "print(1)\n"
    assert script.notes == ("line 1: python reads a program from the lines that follow: it is not read",)


def test_a_loop_that_reads_lines_reads_each_of_them_once() -> None:
    """Until they end; what is read into several names has the rest in the last one."""
    assert words("while read -r a b; do python $a $b; done <<E\n1 2 3\n\n4\nE\n") == [
        ["python", "1", "2", "3"],
        ["python"],
        ["python", "4"],
    ]


def test_lines_of_a_list_keep_their_places() -> None:
    """Elements that mapfile reads stand in the heredoc."""
    text = 'N=3\nmapfile -t A <<L\na.b=1\nc.d=$N\nL\npython t.py "${A[@]}"\n'
    program = read(text).programs[0]
    assert [(word.text, written(text, word.span)) for word in program.words[2:]] == [
        ("a.b=1", "a.b=1"),
        ("c.d=3", "c.d=$N"),
    ]


def test_lines_that_a_function_or_a_file_of_the_script_gives_are_read() -> None:
    """`< <(command)` and `< file`; what only another program prints stays unknown."""
    script = "f() { cat <<E\na.b=$1\nc.d=2\nE\n}\n"
    assert words(f'{script}mapfile -t A < <(f 8)\npython t.py "${{A[@]}}"\n') == [["python", "t.py", "a.b=8", "c.d=2"]]
    assert words(f'{script}f 4 > x\nmapfile -t A < x\npython t.py "${{A[@]}}"\n') == [
        ["python", "t.py", "a.b=4", "c.d=2"]
    ]
    assert words('mapfile -t A < <(echo -n "")\npython t.py "${A[@]}" z\n') == [["python", "t.py", "z"]]
    (program,) = read('mapfile -t A < <(other)\npython t.py "${A[@]}"\n').programs
    assert program.words[-1].unknown == ("what is read from outside",)


def test_lines_that_go_on_from_a_command_are_noted_once() -> None:
    """However many there are: a command of a manifest has one in every line."""
    script = read("python a.py\na.b=1\na.c=2\n--d 3\n")
    assert [[word.text for word in one.words] for one in script.programs] == [
        ["python", "a.py", "a.b=1", "a.c=2", "--d", "3"]
    ]
    assert [note.partition(":")[0] for note in script.notes] == ["line 2"]


def test_an_unreadable_line_is_noted_and_the_rest_is_read() -> None:
    """An error costs the line where it stands."""
    script = read("python a.py --x 1\nfi ;; )\npython b.py --y 2\n")
    assert ["python", "a.py", "--x", "1"] in [[word.text for word in program.words] for program in script.programs]
    assert ["python", "b.py", "--y", "2"] in [[word.text for word in program.words] for program in script.programs]
    assert any(note.startswith("line 2: cannot be read") for note in script.notes)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('python t.py --a 1 --b "2', [["python", "t.py", "--a", "1", "--b", "2"]]),
        ("ARGS=(--a 1\n--b 2", [["--a", "1", "--b", "2"]]),
        ("for i in 1 2\npython $i\ndone", [["python", "1"], ["python", "2"]]),
        ("if true; then\npython a", [["python", "a"]]),
        ("while true\npython a", [["python", "a"]]),
        ("case x in x) python a;;", [["python", "a"]]),
        ("python a\ndone\npython b", [["python", "a"], ["python", "b"]]),
    ],
)
def test_what_is_cut_off_is_read_as_far_as_it_goes(text: str, expected: list[list[str]]) -> None:
    """Quotations and lists reach to the end, and a body needs no last word; a note says which line it was."""
    assert words(text) == expected
    assert any("cannot be read" in note for note in read(text).notes)


def test_tabs_before_the_lines_of_a_heredoc_are_none_of_it_after_a_dash() -> None:
    """`<<-` takes them away, and lines keep their places."""
    text = "mapfile -t A <<-E\n\t\ta.b=1\n\tE\ncat > f <<-'E'\n\tx: 1\n\tE\npython t ${A[@]}\n"
    script = read(text)
    word = script.programs[0].words[2]
    assert (word.text, written(text, word.span), script.files["f"].text) == ("a.b=1", "a.b=1", "x: 1\n")


@pytest.mark.parametrize(
    "text",
    [
        'bash -c "python --n $N"',
        'A=(--n "$N")\npython "${A[@]}"',
        'echo "python --n $N" > f; python --n $N',
        "f() { python --n $1; }; f $N",
        'read -r X <<< "$N"\npython --n $X',
        "for x in $N; do python --n ${x%.*}; done",
    ],
)
def test_what_is_unknown_is_named_wherever_it_comes_out(text: str) -> None:
    """Through scripts within scripts, arrays, functions, strings and edits."""
    (program,) = read(text).programs
    assert [(word.text, word.unknown) for word in program.words] == [("python", ()), ("--n", ()), ("", ("N",))]


def test_where_nothing_can_be_read_that_is_said() -> None:
    """No program, no value: a fault."""
    with pytest.raises(InputError, match=r"run\.sh: nothing of it can be read as a shell script"):
        read("$( $( $(")


def test_eval_is_not_followed() -> None:
    """A note says so."""
    assert read('eval "python x"').notes == ("line 1: eval is not followed: what it would run is not known",)
    assert read('eval "python x"').programs == ()


def test_arguments_are_those_that_are_given() -> None:
    """The script's own `$1` and "$@"."""
    script = read_script('N=${1:-4}; shift; python t.py $N "$@"', "x.sh", lambda _: None, ("8", "a b"))
    assert [word.text for word in script.programs[0].words] == ["python", "t.py", "8", "a b"]


def test_a_function_fails_where_it_returns_so() -> None:
    """And what follows `||` is read then."""
    assert words("f() { return 1; }\ng() { return; }\nf || python a; g || python b") == [["python", "a"]]


def test_locals_end_with_their_function() -> None:
    """And programs of functions count where they are called."""
    assert words("n=1\nf() { local n=$1; python f $n; }\nf 2\npython g $n") == [
        ["python", "f", "2"],
        ["python", "g", "1"],
    ]
