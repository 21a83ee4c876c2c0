"""What training a network costs: data, precision, the loop and its clock. PyTorch is loaded only by those who train."""
