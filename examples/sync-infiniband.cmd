# The same over 400 Gb/s InfiniBand.
rlsize sync --params 70e9 --bandwidth "50 GB/s"
