// Values and adjoints by hand, for `python -m benchmarks.native`.
#include <algorithm>
#include <cmath>
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

// --- programs of arrays -------------------------------------------------------------------------

typedef const double* __restrict in;
typedef const long* __restrict places;
typedef double* __restrict out;

extern "C" double logsumexp(in x, long n) {
    double m = x[0], total = 0.0;
    for (long i = 1; i < n; ++i) m = x[i] > m ? x[i] : m;
    for (long i = 0; i < n; ++i) total += std::exp(x[i] - m);
    return m + std::log(total);
}

extern "C" void logsumexp_gradient(in x, long n, out g) {
    double m = x[0], total = 0.0;
    for (long i = 1; i < n; ++i) m = x[i] > m ? x[i] : m;
    for (long i = 0; i < n; ++i) total += g[i] = std::exp(x[i] - m);
    for (long i = 0; i < n; ++i) g[i] /= total;
}

// Of N points under K Gaussians in D dimensions; with outputs, their gradients.
template <long D>
static double mixture_of(in logits, in means, in roots, in points, long N, long K, out gl,
                         out gm, out gr) {
    std::vector<double> d(K * D), y(K * D), s(K), sb(D), turned(K * D * D);
    if (gl) std::fill(gl, gl + K, 0.0), std::fill(gm, gm + K * D, 0.0);
    if (gl) std::fill(gr, gr + K * D * D, 0.0);
    for (long k = 0; k < K; ++k)
        for (long i = 0; i < D; ++i)
            for (long j = 0; j < D; ++j) turned[(k * D + j) * D + i] = roots[(k * D + i) * D + j];
    double total = 0.0;
    for (long n = 0; n < N; ++n) {
        for (long k = 0; k < K; ++k) {
            double* yk = &y[k * D];
            for (long i = 0; i < D; ++i) yk[i] = 0.0;
            for (long j = 0; j < D; ++j) {
                double apart = d[k * D + j] = points[n * D + j] - means[k * D + j];
                for (long i = 0; i < D; ++i) yk[i] += turned[(k * D + j) * D + i] * apart;
            }
            double square = 0.0;
            for (long i = 0; i < D; ++i) square += yk[i] * yk[i];
            s[k] = logits[k] - 0.5 * square;
        }
        double m = s[0], sum = 0.0;
        for (long k = 1; k < K; ++k) m = s[k] > m ? s[k] : m;
        for (long k = 0; k < K; ++k) sum += s[k] = std::exp(s[k] - m);
        total += m + std::log(sum);
        if (!gl) continue;
        for (long k = 0; k < K; ++k) {
            double p = s[k] / sum;
            gl[k] += p;
            for (long j = 0; j < D; ++j) sb[j] = 0.0;
            for (long i = 0; i < D; ++i) {
                double yb = -p * y[k * D + i];
                for (long j = 0; j < D; ++j) {
                    gr[(k * D + i) * D + j] += yb * d[k * D + j];
                    sb[j] += yb * roots[(k * D + i) * D + j];
                }
            }
            for (long j = 0; j < D; ++j) gm[k * D + j] -= sb[j];
        }
    }
    double sum = 0.0;
    for (long k = 0; k < K; ++k) sum += std::exp(logits[k]);
    if (gl)
        for (long k = 0; k < K; ++k) gl[k] -= N * std::exp(logits[k]) / sum;
    return total - N * std::log(sum);
}

extern "C" double mixture(in logits, in means, in roots, in points, long N, long K) {
    return mixture_of<10>(logits, means, roots, points, N, K, nullptr, nullptr, nullptr);
}

extern "C" void mixture_gradient(in logits, in means, in roots, in points, long N, long K,
                                 out gl, out gm, out gr) {
    mixture_of<10>(logits, means, roots, points, N, K, gl, gm, gr);
}

static double lstm_of(in w, in b, in x, in h, in c, long H, out z, out t) {
    double total = 0.0;
    for (long r = 0; r < 4 * H; ++r) {
        const double* row = w + r * 2 * H;
        double sum = b[r];
        for (long j = 0; j < H; ++j) sum += row[j] * x[j] + row[H + j] * h[j];
        z[r] = r < 3 * H ? 1 / (1 + std::exp(-sum)) : std::tanh(sum);
    }
    for (long k = 0; k < H; ++k) {
        t[k] = std::tanh(z[H + k] * c[k] + z[k] * z[3 * H + k]);
        total += z[2 * H + k] * t[k];
    }
    return total;
}

extern "C" double lstm(in w, in b, in x, in h, in c, long H) {
    std::vector<double> z(4 * H), t(H);
    return lstm_of(w, b, x, h, c, H, z.data(), t.data());
}

extern "C" void lstm_gradient(in w, in b, in x, in h, in c, long H, out gw, out gb, out gx, out gh,
                              out gc) {
    std::vector<double> z(4 * H), t(H);
    lstm_of(w, b, x, h, c, H, z.data(), t.data());
    for (long k = 0; k < H; ++k) {
        double i = z[k], f = z[H + k], o = z[2 * H + k], a = z[3 * H + k];
        double cb = o * (1 - t[k] * t[k]);
        gb[k] = cb * a * i * (1 - i);
        gb[H + k] = cb * c[k] * f * (1 - f);
        gb[2 * H + k] = t[k] * o * (1 - o);
        gb[3 * H + k] = cb * i * (1 - a * a);
        gc[k] = cb * f;
        gx[k] = gh[k] = 0.0;
    }
    for (long r = 0; r < 4 * H; ++r) {
        const double* row = w + r * 2 * H;
        double* g = gw + r * 2 * H;
        for (long j = 0; j < H; ++j) {
            g[j] = gb[r] * x[j];
            g[H + j] = gb[r] * h[j];
            gx[j] += gb[r] * row[j];
            gh[j] += gb[r] * row[H + j];
        }
    }
}

extern "C" double gather(in x, in weights, places sources, long n) {
    double total = 0.0;
    for (long i = 0; i < n; ++i) total += weights[i] * x[sources[i]] * x[sources[i]];
    return total;
}

extern "C" void gather_gradient(in x, in weights, places sources, long n, out g) {
    std::fill(g, g + n, 0.0);
    for (long i = 0; i < n; ++i) g[sources[i]] += 2 * weights[i] * x[sources[i]];
}

// The factors take the places below the diagonal.
static double eliminated(in a, long n, out u) {
    std::copy(a, a + n * n, u);
    double product = 1.0;
    for (long k = 0; k < n; ++k) {
        product *= u[k * n + k];
        for (long i = k + 1; i < n; ++i) {
            double factor = u[i * n + k] /= u[k * n + k];
            for (long j = k + 1; j < n; ++j) u[i * n + j] -= factor * u[k * n + j];
        }
    }
    return product;
}

extern "C" double determinant(in a, long n) {
    std::vector<double> u(n * n);
    return eliminated(a, n, u.data());
}

extern "C" void determinant_gradient(in a, long n, out g) {
    std::vector<double> u(n * n);
    double product = eliminated(a, n, u.data());
    std::fill(g, g + n * n, 0.0);
    for (long k = 0; k < n; ++k) g[k * n + k] = product / u[k * n + k];
    for (long k = n - 2; k >= 0; --k)
        for (long i = n - 1; i > k; --i) {
            double factor = u[i * n + k], bar = 0.0;
            for (long j = k + 1; j < n; ++j) {
                bar -= g[i * n + j] * u[k * n + j];
                g[k * n + j] -= factor * g[i * n + j];
            }
            bar /= u[k * n + k];
            g[i * n + k] = bar;
            g[k * n + k] -= bar * factor;
        }
}

// --- Kalman filter ------------------------------------------------------------------------------

typedef double vector[4];
typedef double matrix[4][4];

// C = A B, or with one of them transposed.
template <bool of_a, bool of_b>
static inline void product(const matrix& a, const matrix& b, matrix& c) {
    for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) {
            double sum = 0.0;
            for (int k = 0; k < 4; ++k)
                sum += (of_a ? a[k][i] : a[i][k]) * (of_b ? b[j][k] : b[k][j]);
            c[i][j] = sum;
        }
}

// The inverse of a positive definite matrix, by Gauss and Jordan; gives the determinant.
static inline double inverted(const matrix& s, matrix& y) {
    double product = 1.0;
    for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) y[i][j] = s[i][j];
    for (int k = 0; k < 4; ++k) {
        double pivot = y[k][k];
        product *= pivot;
        y[k][k] = 1.0;
        for (int j = 0; j < 4; ++j) y[k][j] /= pivot;
        for (int i = 0; i < 4; ++i) {
            if (i == k) continue;
            double factor = y[i][k];
            y[i][k] = 0.0;
            for (int j = 0; j < 4; ++j) y[i][j] -= factor * y[k][j];
        }
    }
    return product;
}

struct Step {
    matrix p, inverse, z;  // the covariance ahead, that of s, and z = s^-1 p
    vector v, w;           // the innovation, and s^-1 v
};

static double filtered(double noise, const matrix& moves, const vector* seen, long n, Step* steps) {
    vector x = {0, 0, 0, 0};
    matrix p = {{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}, {0, 0, 0, 1}};
    double total = 0.0;
    for (long t = 0; t < n; ++t) {
        Step& s = steps[t];
        matrix half, sum;
        vector ahead;
        product<false, false>(moves, p, half);
        product<false, true>(half, moves, s.p);
        for (int i = 0; i < 4; ++i) {
            ahead[i] = 0.0;
            for (int j = 0; j < 4; ++j) ahead[i] += moves[i][j] * x[j];
            s.v[i] = seen[t][i] - ahead[i];
            s.p[i][i] += noise;
        }
        for (int i = 0; i < 4; ++i)
            for (int j = 0; j < 4; ++j) sum[i][j] = s.p[i][j] + (i == j);
        total += std::log(inverted(sum, s.inverse));
        product<false, false>(s.inverse, s.p, s.z);
        product<true, false>(s.z, s.p, half);
        for (int i = 0; i < 4; ++i) {
            s.w[i] = 0.0;
            x[i] = ahead[i];
            for (int j = 0; j < 4; ++j) {
                s.w[i] += s.inverse[i][j] * s.v[j];
                x[i] += s.z[j][i] * s.v[j];
                p[i][j] = s.p[i][j] - half[i][j];
            }
            total += s.v[i] * s.w[i];
        }
    }
    return total;
}

extern "C" double kalman(double noise, in moves, in seen, long n) {
    std::vector<Step> steps(n);
    return filtered(noise, *(const matrix*)moves, (const vector*)seen, n, steps.data());
}

extern "C" void kalman_gradient(double noise, in moves_, in seen, long n, out g) {
    const matrix& moves = *(const matrix*)moves_;
    std::vector<Step> steps(n);
    filtered(noise, moves, (const vector*)seen, n, steps.data());
    vector xb = {0, 0, 0, 0};
    matrix pb = {{0}};
    double bar = 0.0;
    for (long t = n - 1; t >= 0; --t) {
        const Step& s = steps[t];
        matrix zb, q, sb, ahead;
        vector u, vb;
        product<false, true>(s.p, pb, zb);  // zb = -(pb p')' + v xb'
        for (int i = 0; i < 4; ++i) {
            u[i] = vb[i] = 0.0;
            for (int j = 0; j < 4; ++j) {
                zb[i][j] = s.v[i] * xb[j] - zb[i][j];
                u[i] += s.inverse[j][i] * s.v[j];
                vb[i] += s.z[i][j] * xb[j];
            }
            vb[i] += s.w[i] + u[i];
        }
        product<true, false>(s.inverse, zb, q);
        product<false, true>(q, s.z, sb);
        product<false, false>(s.z, pb, ahead);
        for (int i = 0; i < 4; ++i)
            for (int j = 0; j < 4; ++j)
                ahead[i][j] = pb[i][j] - ahead[i][j] + q[i][j] - sb[i][j] - u[i] * s.w[j] +
                              s.inverse[j][i];
        for (int i = 0; i < 4; ++i) bar += ahead[i][i];
        product<true, false>(moves, ahead, sb);
        product<false, false>(sb, moves, pb);
        vector next;
        for (int j = 0; j < 4; ++j) {
            next[j] = 0.0;
            for (int i = 0; i < 4; ++i) next[j] += moves[i][j] * (xb[i] - vb[i]);
        }
        std::copy(next, next + 4, xb);
    }
    *g = bar;
}

// --- bundle adjustment --------------------------------------------------------------------------

// Half the squared residuals; with outputs, the gradients of cameras (11 numbers) and points.
static double bundle_of(in cameras, in points, in pixels, places of_camera, places of_point,
                        long n, out gc, out gp) {
    double total = 0.0;
    for (long o = 0; o < n; ++o) {
        const double *c = cameras + 11 * of_camera[o], *x = points + 3 * of_point[o];
        double a = x[0] - c[3], b = x[1] - c[4], d = x[2] - c[5];
        double r0 = c[0], r1 = c[1], r2 = c[2];
        double square = r0 * r0 + r1 * r1 + r2 * r2, angle = std::sqrt(square);
        double co = std::cos(angle), si = std::sin(angle), v0 = r0 / angle, v1 = r1 / angle,
               v2 = r2 / angle;
        double k0 = v1 * d - v2 * b, k1 = v2 * a - v0 * d, k2 = v0 * b - v1 * a;
        double along = v0 * a + v1 * b + v2 * d, rest = along * (1 - co);
        double y0 = a * co + k0 * si + v0 * rest, y1 = b * co + k1 * si + v1 * rest,
               y2 = d * co + k2 * si + v2 * rest;
        double p = y0 / y2, q = y1 / y2, rho = p * p + q * q;
        double l = 1 + c[9] * rho + c[10] * rho * rho;
        double e = c[6] * l * p + c[7] - pixels[2 * o], f = c[6] * l * q + c[8] - pixels[2 * o + 1];
        total += 0.5 * (e * e + f * f);
        if (!gc) continue;
        double *g = gc + 11 * of_camera[o], *h = gp + 3 * of_point[o];
        double both = e * p + f * q, lb = c[6] * both;
        double rhob = lb * (c[9] + 2 * c[10] * rho);
        double pb = c[6] * l * e + 2 * rhob * p, qb = c[6] * l * f + 2 * rhob * q;
        g[6] += l * both;
        g[7] += e;
        g[8] += f;
        g[9] += lb * rho;
        g[10] += lb * rho * rho;
        double b0 = pb / y2, b1 = qb / y2, b2 = -(pb * p + qb * q) / y2;
        double cob = b0 * a + b1 * b + b2 * d, sib = b0 * k0 + b1 * k1 + b2 * k2;
        double restb = b0 * v0 + b1 * v1 + b2 * v2, alongb = restb * (1 - co);
        cob -= restb * along;
        double m0 = b0 * si, m1 = b1 * si, m2 = b2 * si;  // bars of the cross product
        double v0b = b0 * rest + alongb * a + m2 * b - m1 * d;
        double v1b = b1 * rest + alongb * b + m0 * d - m2 * a;
        double v2b = b2 * rest + alongb * d + m1 * a - m0 * b;
        double ab = b0 * co + alongb * v0 + m1 * v2 - m2 * v1;
        double bb = b1 * co + alongb * v1 + m2 * v0 - m0 * v2;
        double db = b2 * co + alongb * v2 + m0 * v1 - m1 * v0;
        double angleb = sib * co - cob * si - (v0b * v0 + v1b * v1 + v2b * v2) / angle;
        g[0] += v0b / angle + angleb * v0;
        g[1] += v1b / angle + angleb * v1;
        g[2] += v2b / angle + angleb * v2;
        g[3] -= ab;
        g[4] -= bb;
        g[5] -= db;
        h[0] += ab;
        h[1] += bb;
        h[2] += db;
    }
    return total;
}

extern "C" double bundle(in cameras, in points, in pixels, places of_camera, places of_point,
                         long n, long, long) {
    return bundle_of(cameras, points, pixels, of_camera, of_point, n, nullptr, nullptr);
}

extern "C" void bundle_gradient(in cameras, in points, in pixels, places of_camera,
                                places of_point, long n, long k, long m, out gc, out gp) {
    std::fill(gc, gc + 11 * k, 0.0);
    std::fill(gp, gp + 3 * m, 0.0);
    bundle_of(cameras, points, pixels, of_camera, of_point, n, gc, gp);
}

static inline void flow(in s, out d) {  // of Lorenz
    d[0] = 10 * (s[1] - s[0]);
    d[1] = s[0] * (28 - s[2]) - s[1];
    d[2] = s[0] * s[1] - 8.0 / 3 * s[2];
}

static inline void flow_back(in s, in db, out sb) {
    sb[0] += -10 * db[0] + (28 - s[2]) * db[1] + s[1] * db[2];
    sb[1] += 10 * db[0] - db[1] + s[0] * db[2];
    sb[2] += -s[0] * db[1] - 8.0 / 3 * db[2];
}

static inline void along(in s, double h, in k, out v) {
    for (int j = 0; j < 3; j++) v[j] = s[j] + h * k[j];
}

static double lorenz_of(in start, long n, double h, out y) {
    double total = 0, k1[3], k2[3], k3[3], k4[3], v[3];
    for (int j = 0; j < 3; j++) y[j] = start[j];
    for (long i = 0; i + 1 < n; i++, y += 3) {
        flow(y, k1);
        along(y, h / 2, k1, v), flow(v, k2);
        along(y, h / 2, k2, v), flow(v, k3);
        along(y, h, k3, v), flow(v, k4);
        for (int j = 0; j < 3; j++) {
            y[3 + j] = y[j] + h / 6 * (k1[j] + 2 * k2[j] + 2 * k3[j] + k4[j]);
            total += y[j] * y[j];
        }
    }
    return total + y[0] * y[0] + y[1] * y[1] + y[2] * y[2];
}

extern "C" double lorenz(in start, long n, double h) {
    static std::vector<double> y;
    y.resize(3 * n);
    return lorenz_of(start, n, h, y.data());
}

extern "C" void lorenz_gradient(in start, long n, double h, out bar) {
    static std::vector<double> rows;
    rows.resize(3 * n);
    lorenz_of(start, n, h, rows.data());
    double *y = rows.data() + 3 * (n - 1), k1[3], k2[3], k3[3], v2[3], v3[3], v4[3];
    for (int j = 0; j < 3; j++) bar[j] = 2 * y[j];
    for (long i = n - 2; i >= 0; i--) {
        y -= 3;
        flow(y, k1);
        along(y, h / 2, k1, v2), flow(v2, k2);
        along(y, h / 2, k2, v3), flow(v3, k3);
        along(y, h, k3, v4);
        double k1b[3], k2b[3], k3b[3], k4b[3], b2[3] = {}, b3[3] = {}, b4[3] = {}, sb[3];
        for (int j = 0; j < 3; j++) k4b[j] = h / 6 * bar[j];
        flow_back(v4, k4b, b4);
        for (int j = 0; j < 3; j++) k3b[j] = h / 3 * bar[j] + h * b4[j];
        flow_back(v3, k3b, b3);
        for (int j = 0; j < 3; j++) k2b[j] = h / 3 * bar[j] + h / 2 * b3[j];
        flow_back(v2, k2b, b2);
        for (int j = 0; j < 3; j++) {
            k1b[j] = h / 6 * bar[j] + h / 2 * b2[j];
            sb[j] = bar[j] + b2[j] + b3[j] + b4[j] + 2 * y[j];
        }
        flow_back(y, k1b, sb);
        for (int j = 0; j < 3; j++) bar[j] = sb[j];
    }
}
