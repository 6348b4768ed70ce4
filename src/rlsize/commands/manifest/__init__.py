"""`rlsize manifest`: the resize as a file for Kubernetes, Ray, KEDA or Kueue; nothing is applied."""
