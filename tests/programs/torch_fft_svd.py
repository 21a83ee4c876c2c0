"""FFT, SVD, eigenvalues, solve and Cholesky."""
# needs: torch

import torch
from show import show

torch.manual_seed(4)
for dtype in (torch.float32, torch.float64):
    a = torch.randn(60, 60, dtype=dtype)
    show("fft", torch.view_as_real(torch.fft.fft(a)))
    show("rfft2", torch.view_as_real(torch.fft.rfft2(a)))
    show("prime", torch.view_as_real(torch.fft.fft(a.reshape(-1)[:1021])))
    show("svd", torch.linalg.svd(a).S)
    show("eigh", torch.linalg.eigh(a + a.T).eigenvalues)
    show("solve", torch.linalg.solve(a, a[0]))
    show("cholesky", torch.linalg.cholesky(a @ a.T + 60 * torch.eye(60, dtype=dtype)))
