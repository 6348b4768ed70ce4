"""`rlsize init`: write a commented scenario file, from questions or from flags."""
