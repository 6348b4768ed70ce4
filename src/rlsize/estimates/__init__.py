"""WHAT TO EXPECT: facts and equations joined into figures with provenance and, where inputs are uncertain, a band."""
