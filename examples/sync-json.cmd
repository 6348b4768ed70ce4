# The sync for a program.
rlsize sync --params 70e9 --bandwidth "50 GB/s" --json
