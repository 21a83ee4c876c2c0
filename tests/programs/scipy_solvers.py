"""Differential equations, sparse systems, optimisation, quadrature, splines and special functions."""
# needs: scipy

import numpy as np
from scipy import integrate, interpolate, ndimage, optimize, signal, sparse, special, stats
from scipy.sparse import linalg
from show import show

for method in ("RK45", "DOP853", "BDF", "LSODA"):
    solved = integrate.solve_ivp(lambda t, y: [y[1], (1 - y[0] ** 2) * y[1] - y[0]], (0, 10), [2.0, 0.0], method=method)
    show(method, solved.y)
matrix = sparse.diags([-1.0, 2.5, -1.0], [-1, 0, 1], shape=(300, 300)).tocsc()
show("spsolve", linalg.spsolve(matrix, np.ones(300)))
show("cg", linalg.cg(matrix, np.ones(300))[0])
show("eigs", linalg.eigsh(matrix, 3, v0=np.ones(300))[0])
for method in ("BFGS", "L-BFGS-B", "Nelder-Mead", "SLSQP"):
    show(method, optimize.minimize(optimize.rosen, np.full(4, 1.3), method=method).x)
show("quad", integrate.quad(lambda x: np.exp(-x * x), -np.inf, np.inf))
x = np.linspace(0.1, 9, 200)
show("spline", interpolate.CubicSpline(x, np.sin(x))(x + 0.01))
show("bessel", special.jv(1.5, x))
show("gamma", special.gammaln(x))
show("normal", stats.norm.cdf(x - 4))
show("filter", signal.lfilter(*signal.butter(4, 0.2), x))
show("gaussian", ndimage.gaussian_filter(np.outer(x, x), 2))
