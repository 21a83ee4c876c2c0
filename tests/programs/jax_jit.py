"""Compiled matrix products, a convolution, gradients, a scan and random numbers (machine code that XLA makes at run time)."""
# needs: jax

import jax
import jax.numpy as jnp
from show import show

key = jax.random.key(14)
a = jax.random.normal(key, (70, 90))
show("random", a)
show("matmul", jax.jit(lambda x: x @ x.T)(a))
show("bf16", jax.jit(lambda x: x @ x.T)(a.astype(jnp.bfloat16)).astype(jnp.float32))
image, kernel = a[:64, :64].reshape(1, 4, 32, 32), jax.random.normal(key, (8, 4, 3, 3))
show("conv", jax.jit(lambda x, w: jax.lax.conv(x, w, (1, 1), "SAME"))(image, kernel))
show("gradient", jax.jit(jax.grad(lambda x: jnp.tanh(x @ x.T).sum()))(a))
show("scan", jax.lax.scan(lambda carry, x: (jnp.sin(carry + x), carry.sum()), a[0], a)[0])
show("fft", jnp.abs(jnp.fft.fft(a)))
show("svd", jnp.linalg.svd(a, compute_uv=False))
