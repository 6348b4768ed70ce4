# A run's log beside the script that it ran with: which phases the model explains, and which time stays the run's own.
# The reference of this run is a teacher of ten times the size, which the script does not say.
rlsize calibrate examples/launch/distil-3b.log examples/launch/distil-3b.sh --set cluster.gpu=a800-sxm
