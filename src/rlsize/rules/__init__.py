"""Which equation gives what: rules by stage, for `rlsize.flow` to resolve."""
