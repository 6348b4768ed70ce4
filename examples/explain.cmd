# The page of an equation.
rlsize explain weight_sync_time
