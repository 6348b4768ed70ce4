# A review that no plan can pass: 2,000 steps in 36 hours on 64 GPUs. No page is written; the reason is.
# exit code 1
rlsize report examples/review-32b.yaml --steps 2000 --finish-by "36 h" -o review.html
