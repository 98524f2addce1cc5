"""Derivatives by reverse accumulation on numpy arrays of float64, for references that write down the forward pass alone.

    w = V(array);  loss = ((x @ w) ** 2).sum();  loss.backward();  w.grad
"""
import math

import numpy as np

_erf = np.vectorize(math.erf, otypes=[np.float64])


def _fit(g, shape):
    """Sum g over the axes along which an operand of this shape was repeated."""
    g = g.sum(axis=tuple(range(g.ndim - len(shape)))) if g.ndim > len(shape) else g
    repeated = tuple(i for i, n in enumerate(shape) if n == 1 and g.shape[i] != 1)
    return g.sum(axis=repeated, keepdims=True) if repeated else g


class V:
    """A value in the graph. `sources`: pairs of a value that it is made from, and a function from its gradient to that one's."""

    __array_priority__ = 1

    def __init__(self, x, *sources):
        self.x, self.sources, self.grad = np.asarray(x, np.float64), sources, None

    shape = property(lambda self: self.x.shape)
    T = property(lambda self: self.turn(*range(self.x.ndim)[::-1]))

    def backward(self):
        order, seen, todo = [], set(), [(self, False)]
        while todo:
            v, ready = todo.pop()
            if ready:
                order.append(v)
            elif id(v) not in seen:
                seen.add(id(v))
                todo.append((v, True))
                todo += [(s, False) for s, _ in v.sources]
        for v in order:
            v.grad = np.zeros_like(v.x)
        self.grad = np.ones_like(self.x)
        for v in reversed(order):
            for s, back in v.sources:
                s.grad += back(v.grad)

    def __add__(self, o):
        o = of(o)
        return V(self.x + o.x, (self, lambda g: _fit(g, self.shape)), (o, lambda g: _fit(g, o.shape)))

    def __mul__(self, o):
        o = of(o)
        return V(self.x * o.x, (self, lambda g: _fit(g * o.x, self.shape)), (o, lambda g: _fit(g * self.x, o.shape)))

    def __matmul__(self, o):
        o = of(o)
        turned = lambda a: np.swapaxes(a, -1, -2)
        return V(self.x @ o.x, (self, lambda g: g @ turned(o.x)), (o, lambda g: turned(self.x) @ g))

    def __rmatmul__(self, o):
        return of(o) @ self

    def __pow__(self, k):
        return self.map(self.x ** k, k * self.x ** (k - 1))

    def __neg__(self):
        return self * -1

    def __sub__(self, o):
        return self + -of(o)

    def __rsub__(self, o):
        return of(o) - self

    def __truediv__(self, o):
        return self * of(o) ** -1

    def __rtruediv__(self, o):
        return of(o) / self

    __radd__, __rmul__ = __add__, __mul__

    def map(self, y, slope):
        """y, made from each element, and its derivative there."""
        return V(y, (self, lambda g: g * slope))

    def sum(self, axis=None, keep=False):
        def back(g):
            return np.broadcast_to(g if keep or axis is None else np.expand_dims(g, axis), self.shape)
        return V(self.x.sum(axis=axis, keepdims=keep), (self, back))

    def mean(self, axis, keep=False):
        return self.sum(axis, keep) / self.shape[axis]

    def reshape(self, *shape):
        return V(self.x.reshape(shape), (self, lambda g: g.reshape(self.shape)))

    def turn(self, *axes):
        return V(self.x.transpose(axes), (self, lambda g: g.transpose(np.argsort(axes))))

    def __getitem__(self, at):
        def back(g):
            all_ = np.zeros_like(self.x)
            np.add.at(all_, at, g)
            return all_
        return V(self.x[at], (self, back))


def of(x):
    return x if isinstance(x, V) else V(x)


def exp(v):
    y = np.exp(v.x)
    return v.map(y, y)


def log(v):
    return v.map(np.log(v.x), 1 / v.x)


def sqrt(v):
    y = np.sqrt(v.x)
    return v.map(y, 0.5 / y)


def sin(v):
    return v.map(np.sin(v.x), np.cos(v.x))


def cos(v):
    return v.map(np.cos(v.x), -np.sin(v.x))


def tanh(v):
    y = np.tanh(v.x)
    return v.map(y, 1 - y * y)


def sigmoid(v):
    y = 0.5 * (1 + np.tanh(v.x / 2))
    return v.map(y, y * (1 - y))


def gelu(v):
    phi = 0.5 * (1 + _erf(v.x / math.sqrt(2)))
    return v.map(v.x * phi, phi + v.x * np.exp(-v.x * v.x / 2) / math.sqrt(2 * math.pi))


def relu(v):
    return v.map(np.maximum(v.x, 0), v.x > 0)


def leaky(v):
    return v.map(np.where(v.x > 0, v.x, 0.01 * v.x), np.where(v.x > 0, 1, 0.01))


def logsumexp(v, axis=-1):
    top = v.x.max(axis=axis, keepdims=True)
    return log(exp(v - top).sum(axis, True)) + top


def softmax(v):
    return exp(v - logsumexp(v))


def join(parts, axis):
    ends = np.cumsum([0] + [p.shape[axis] for p in parts])
    take = lambda i: lambda g: np.take(g, range(ends[i], ends[i + 1]), axis)
    return V(np.concatenate([p.x for p in parts], axis), *[(p, take(i)) for i, p in enumerate(parts)])
