"""Real learning: models and data, for real runs. The only part of distsim besides `runtime` that uses torch.

problems    models and data
"""
