# A folder of one's own profiles.
rlsize profiles check examples/my-profiles
