"""WHAT TO SAY: results as a `Report`, ready for any writer; still pure."""
