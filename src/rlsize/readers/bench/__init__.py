"""Result files of serving benchmarks, one module for each tool; every run becomes one `BenchmarkResult`."""
