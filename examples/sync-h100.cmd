# By the profile: NVLink's 900 GB/s are the sum of both directions.
rlsize sync --params 70e9 --gpu h100
