# Is this normal: a run beside its loop, with micro-batches of one sample.
rlsize diagnose examples/operate/slow.jsonl --set model=qwen2.5-3b --set cluster.gpu=a800-sxm --set cluster.gpus=4 \
    --set placement.mode=colocated --set workload.prompts_per_step=64 --set workload.group_size=8 \
    --set trainer.micro_batch_samples=1 --gpu-hour 2
