# 70B over 900 GB/s, taken as one direction because the user says so.
rlsize sync --params 70e9 --bandwidth "900 GB/s"
