// Values and adjoints by hand, for `python -m benchmarks.native`.
#include <vector>

extern "C" double fill(const double* x, double* y, long n) {
    y[0] = x[0];
    double total = y[0];
    for (long i = 1; i < n; ++i) {
        y[i] = 0.9 * y[i - 1] + x[i] * y[i - 1];
        total += y[i];
    }
    return total;
}

extern "C" void fill_gradient(const double* x, double* y, double* g, long n) {
    y[0] = x[0];
    for (long i = 1; i < n; ++i) y[i] = 0.9 * y[i - 1] + x[i] * y[i - 1];
    double bar = 1.0;
    for (long i = n - 1; i > 0; --i) {
        g[i] = bar * y[i - 1];
        bar = 1.0 + bar * (0.9 + x[i]);
    }
    g[0] = bar;
}

static const double h = 0.01;

static inline void step(double& x, double& y) {
    double k1 = y, l1 = (1 - x * x) * y - x;
    double x2 = x + 0.5 * h * k1, y2 = y + 0.5 * h * l1;
    double k2 = y2, l2 = (1 - x2 * x2) * y2 - x2;
    double x3 = x + 0.5 * h * k2, y3 = y + 0.5 * h * l2;
    double k3 = y3, l3 = (1 - x3 * x3) * y3 - x3;
    double x4 = x + h * k3, y4 = y + h * l3;
    double k4 = y4, l4 = (1 - x4 * x4) * y4 - x4;
    x += h / 6 * (k1 + 2 * k2 + 2 * k3 + k4);
    y += h / 6 * (l1 + 2 * l2 + 2 * l3 + l4);
}

extern "C" double oscillator(double x, double y) {
    for (int i = 0; i < 1000; ++i) step(x, y);
    return x;
}

extern "C" double oscillator_gradient(double x, double y) {
    const int n = 1000;
    std::vector<double> xs(n), ys(n);
    for (int i = 0; i < n; ++i) {
        xs[i] = x;
        ys[i] = y;
        step(x, y);
    }
    double xb = 1.0, yb = 0.0;
    for (int i = n - 1; i >= 0; --i) {
        x = xs[i];
        y = ys[i];
        double k1 = y, l1 = (1 - x * x) * y - x;
        double x2 = x + 0.5 * h * k1, y2 = y + 0.5 * h * l1;
        double k2 = y2, l2 = (1 - x2 * x2) * y2 - x2;
        double x3 = x + 0.5 * h * k2, y3 = y + 0.5 * h * l2;
        double k3 = y3, l3 = (1 - x3 * x3) * y3 - x3;
        double x4 = x + h * k3, y4 = y + h * l3;
        double c = h / 6;
        double k1b = c * xb, k2b = 2 * c * xb, k3b = 2 * c * xb, k4b = c * xb;
        double l1b = c * yb, l2b = 2 * c * yb, l3b = 2 * c * yb, l4b = c * yb;
        double y4b = k4b + l4b * (1 - x4 * x4), x4b = -l4b * (1 + 2 * x4 * y4);
        k3b += h * x4b;
        l3b += h * y4b;
        double y3b = k3b + l3b * (1 - x3 * x3), x3b = -l3b * (1 + 2 * x3 * y3);
        k2b += 0.5 * h * x3b;
        l2b += 0.5 * h * y3b;
        double y2b = k2b + l2b * (1 - x2 * x2), x2b = -l2b * (1 + 2 * x2 * y2);
        k1b += 0.5 * h * x2b;
        l1b += 0.5 * h * y2b;
        double yn = yb + y4b + y3b + y2b + k1b + l1b * (1 - x * x);
        xb = xb + x4b + x3b + x2b - l1b * (1 + 2 * x * y);
        yb = yn;
    }
    return xb;
}
