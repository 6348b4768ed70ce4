# A launch script of verl, read and not run: in which phase it dies, and which of its keys save it.
# exit code 1
rlsize memory examples/launch/verl-14b.sh --response-tokens 1500
