"""Which equation gives what: rules by stage, for `rlsize.estimates.flow` to resolve."""
