"""What training a network costs: seconds, images a second, accuracy, memory, at which precision.

PyTorch is loaded by whoever trains, never by `import flopwatch`.
"""
