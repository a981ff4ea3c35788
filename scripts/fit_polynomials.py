#!/usr/bin/env python3
"""Minimax coefficients of src/cpu/math.cpp: prints each polynomial, lowest power first, with its relative error.

Lawson's algorithm (iteratively reweighted least squares) on a Chebyshev grid, in double precision.
"""
import math

import numpy as np


def fit(name, f, weight, lo, hi, degree, n=4000, rounds=200):
    """P(u) close to f(u) on [lo, hi], minimising max |weight(u) * (P(u) - f(u))|."""
    k = np.arange(n)
    u = (lo + hi) / 2 + (hi - lo) / 2 * np.cos(np.pi * (k + 0.5) / n)
    y = np.array([f(x) for x in u])
    w = np.array([weight(x) for x in u])
    mid, half = (lo + hi) / 2, (hi - lo) / 2
    v = np.polynomial.chebyshev.chebvander((u - mid) / half, degree)
    l = np.ones(n) / n
    for _ in range(rounds):
        s = np.sqrt(l) * w
        c, *_ = np.linalg.lstsq(v * s[:, None], y * s, rcond=None)
        e = np.abs(w * (v @ c - y))
        l = l * (e + e.max() * 1e-3)
        l /= l.sum()
    poly = np.polynomial.chebyshev.Chebyshev(c, domain=[lo, hi]).convert(kind=np.polynomial.Polynomial).coef
    err = np.abs(w * (np.polynomial.polynomial.polyval(u, poly) - y)).max()
    print(f"{name}: degree {degree}, error {err:.2e} = 2^{math.log2(err):.1f}")
    print("  {" + ", ".join(f"{x:.17g}" for x in poly) + "}")


def near_zero(f, series):
    """f(u) away from 0, `series` near it, where the difference cancels."""
    return lambda u: series(u) if abs(u) < 1e-3 else f(u)


ln2 = math.log(2)
# exp(r) = 1 + r + r^2 Q(r)
fit("exp", near_zero(lambda r: (math.exp(r) - 1 - r) / r**2, lambda r: 0.5 + r / 6 + r * r / 24), lambda r: r * r / math.exp(r),
    -ln2 / 2 * 1.01, ln2 / 2 * 1.01, 4)
# log1p(f) = f - f^2/2 + f^3 P(f)
fit("log", near_zero(lambda f: (math.log1p(f) - f + f * f / 2) / f**3, lambda f: 1 / 3 - f / 4 + f * f / 5),
    lambda f: abs(f**3 / math.log1p(f)) if f else 0.0, math.sqrt(0.5) - 1 - 1e-3, math.sqrt(2) - 1 + 1e-3, 8)
# tanh(x) = x + x u P(u), u = x^2
fit("tanh", near_zero(lambda u: (math.tanh(math.sqrt(u)) / math.sqrt(u) - 1) / u, lambda u: -1 / 3 + 2 * u / 15 - 17 * u * u / 315),
    lambda u: u / (math.tanh(math.sqrt(u)) / math.sqrt(u)) if u else 0.0, 0, 0.625**2, 5)
# erf(x) = x + x P(u), u = x^2
fit("erf small", near_zero(lambda u: math.erf(math.sqrt(u)) / math.sqrt(u) - 1,
                           lambda u: 2 / math.sqrt(math.pi) * (1 - u / 3 + u * u / 10 - u**3 / 42) - 1),
    lambda u: 1 / (math.erf(math.sqrt(u)) / math.sqrt(u)) if u else 1.0, 0, 0.93**2, 6)
# erf(t) = 1 - exp(-t - t P(t)), t > 0.93: absolute error of the exponent, weighted by erfc / erf
fit("erf large", lambda t: (-math.log(math.erfc(t)) - t) / t, lambda t: t * math.erfc(t) / math.erf(t), 0.92, 3.95, 6)
# sin(r) = r + r u P(u), cos(r) = 1 - u/2 + u^2 P(u), |r| <= pi/4
q = (math.pi / 4 * 1.01) ** 2
fit("sin", near_zero(lambda u: (math.sin(math.sqrt(u)) / math.sqrt(u) - 1) / u, lambda u: -1 / 6 + u / 120 - u * u / 5040),
    lambda u: u / (math.sin(math.sqrt(u)) / math.sqrt(u)) if u else 0.0, 0, q, 3)
fit("cos", near_zero(lambda u: (math.cos(math.sqrt(u)) - 1 + u / 2) / u**2, lambda u: 1 / 24 - u / 720 + u * u / 40320),
    lambda u: u * u / math.cos(math.sqrt(u)), 0, q, 3)
# In double, for pow: log2(1 + f) = f P(f) and 2^r = P(r)
fit("log2", near_zero(lambda f: math.log1p(f) / ln2 / f, lambda f: (1 - f / 2 + f * f / 3 - f**3 / 4) / ln2), lambda f: 1.0,
    math.sqrt(0.5) - 1 - 1e-3, math.sqrt(2) - 1 + 1e-3, 15)
fit("exp2", lambda r: 2.0**r, lambda r: 1 / 2.0**r, -0.505, 0.505, 7)
