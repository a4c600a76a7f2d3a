// Values and adjoints by hand.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

typedef long long integer;
typedef std::vector<double> reals;

extern "C" {

// --- least squares -------------------------------------------------------------------------------

static double llsq_residual(const double *x, integer m, integer n, integer i, double *t) {
  *t = -1 + 2.0 * i / (n - 1);
  double r = (*t > 0) - (*t < 0), power = 1;
  for (integer j = 0; j < m; ++j, power *= *t) r -= x[j] * power;
  return r;
}

double llsq(const double *x, integer m, integer n) {
  double y = 0, t;
  for (integer i = 0; i < n; ++i) {
    double r = llsq_residual(x, m, n, i, &t);
    y += 0.5 * r * r;
  }
  return y;
}

void llsq_gradient(const double *x, integer m, integer n, double *g) {
  std::fill(g, g + m, 0.0);
  for (integer i = 0; i < n; ++i) {
    double t, r = llsq_residual(x, m, n, i, &t), power = r;
    for (integer j = 0; j < m; ++j, power *= t) g[j] -= power;
  }
}

// --- log sum exp ---------------------------------------------------------------------------------

double lse(const double *x, integer n) {
  double a = *std::max_element(x, x + n), sum = 0;
  for (integer i = 0; i < n; ++i) sum += std::exp(x[i] - a);
  return a + std::log(sum);
}

void lse_gradient(const double *x, integer n, double *g) {
  double a = *std::max_element(x, x + n), sum = 0;
  for (integer i = 0; i < n; ++i) sum += g[i] = std::exp(x[i] - a);
  for (integer i = 0; i < n; ++i) g[i] /= sum;
}

// --- Runge-Kutta ---------------------------------------------------------------------------------

static void slope(const double *x, const double *y, integer n, double *k) {
  k[0] = x[0];
  for (integer i = 1; i < n; ++i) k[i] = x[i] * y[i - 1];
}

static double rk4(const double *x, integer n, integer steps, double *stages) {
  const double h = 2.0 / steps, at[4] = {0, h / 2, h / 2, h}, by[4] = {h / 6, h / 3, h / 3, h / 6};
  reals y(n, 0.0), z(n), k(n, 0.0), room(n);
  for (integer s = 0; s < steps; ++s) {
    z = y;
    for (int j = 0; j < 4; ++j) {
      double *in = stages ? stages + (4 * s + j) * n : room.data();
      for (integer i = 0; i < n; ++i) in[i] = y[i] + at[j] * k[i];
      slope(x, in, n, k.data());
      for (integer i = 0; i < n; ++i) z[i] += by[j] * k[i];
    }
    y = z;
  }
  return y[n - 1];
}

double ode(const double *x, integer n, integer steps) { return rk4(x, n, steps, nullptr); }

void ode_gradient(const double *x, integer n, integer steps, double *g) {
  const double h = 2.0 / steps, at[4] = {0, h / 2, h / 2, h}, by[4] = {h / 6, h / 3, h / 3, h / 6};
  reals stages(4 * steps * n), y(n, 0.0), k(n), before(n), z(n);
  rk4(x, n, steps, stages.data());
  std::fill(g, g + n, 0.0);
  y[n - 1] = 1;
  for (integer s = steps - 1; s >= 0; --s) {
    std::fill(before.begin(), before.end(), 0.0);  // the cotangent of the stage after
    z = y;
    for (int j = 3; j >= 0; --j) {
      const double *in = &stages[(4 * s + j) * n];
      double after = j < 3 ? at[j + 1] : 0;
      for (integer i = 0; i < n; ++i) k[i] = by[j] * y[i] + after * before[i];
      g[0] += k[0];
      for (integer i = 1; i < n; ++i) g[i] += in[i - 1] * k[i];
      for (integer i = 1; i < n; ++i) before[i - 1] = x[i] * k[i];
      before[n - 1] = 0;
      for (integer i = 0; i < n; ++i) z[i] += before[i];
    }
    y = z;
  }
}

// --- Gaussian mixture ----------------------------------------------------------------------------

static double mixture(const double *alpha, const double *mu, const double *q, const double *l,
                      const double *x, integer n, integer D, integer K, double gamma, double m,
                      double constant, double *ga, double *gm, double *gq, double *gl) {
  const integer T = D * (D - 1) / 2;
  reals e(K * D), sq(K, 0.0), beta(K), d(K * D), y(K * D), w(K);
  double norm = 0;
  for (integer i = 0; i < K * D; ++i) {
    e[i] = std::exp(q[i]);
    sq[i / D] += q[i];
    norm += e[i] * e[i];
  }
  for (integer i = 0; i < K * T; ++i) norm += l[i] * l[i];
  double top = *std::max_element(alpha, alpha + K), sum = 0, sums = 0;
  for (integer k = 0; k < K; ++k) sum += std::exp(alpha[k] - top);
  for (integer k = 0; k < K; ++k) sums += sq[k];
  double f = constant - n * (top + std::log(sum)) - (gamma * gamma / 2 * norm - m * sums);
  if (ga) {
    for (integer k = 0; k < K; ++k) ga[k] = -n * std::exp(alpha[k] - top) / sum;
    std::fill(gm, gm + K * D, 0.0);
    for (integer i = 0; i < K * D; ++i) gq[i] = m - gamma * gamma * e[i] * e[i];
    for (integer i = 0; i < K * T; ++i) gl[i] = -gamma * gamma * l[i];
  }
  for (integer i = 0; i < n; ++i) {
    for (integer k = 0; k < K; ++k) {
      double *dk = &d[k * D], *yk = &y[k * D], half = 0;
      const double *lk = l + k * T;
      for (integer c = 0; c < D; ++c) dk[c] = x[i * D + c] - mu[k * D + c];
      for (integer c = 0; c < D; ++c) yk[c] = e[k * D + c] * dk[c];
      for (integer c = 0; c < D; ++c)
        for (integer r = c + 1; r < D; ++r) yk[r] += *lk++ * dk[c];
      for (integer c = 0; c < D; ++c) half += yk[c] * yk[c];
      beta[k] = alpha[k] - 0.5 * half + sq[k];
    }
    double most = *std::max_element(beta.begin(), beta.end()), all = 0;
    for (integer k = 0; k < K; ++k) all += w[k] = std::exp(beta[k] - most);
    f += most + std::log(all);
    if (!ga) continue;
    for (integer k = 0; k < K; ++k) {
      const double p = w[k] / all, *dk = &d[k * D], *yk = &y[k * D], *lk = l + k * T;
      double *glk = gl + k * T;
      ga[k] += p;
      for (integer c = 0; c < D; ++c) {
        double back = e[k * D + c] * yk[c];
        gq[k * D + c] += p * (1 - yk[c] * dk[c] * e[k * D + c]);
        for (integer r = c + 1; r < D; ++r) {
          back += *lk++ * yk[r];
          *glk++ -= p * yk[r] * dk[c];
        }
        gm[k * D + c] += p * back;
      }
    }
  }
  return f;
}

double gmm(const double *alpha, const double *mu, const double *q, const double *l, const double *x,
           integer n, integer D, integer K, double gamma, double m, double constant) {
  return mixture(alpha, mu, q, l, x, n, D, K, gamma, m, constant, 0, 0, 0, 0);
}

void gmm_gradient(const double *alpha, const double *mu, const double *q, const double *l,
                  const double *x, integer n, integer D, integer K, double gamma, double m,
                  double constant, double *ga, double *gm, double *gq, double *gl) {
  mixture(alpha, mu, q, l, x, n, D, K, gamma, m, constant, ga, gm, gq, gl);
}

// --- recurrent network ---------------------------------------------------------------------------

static double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

static double network(const double *main, const double *extra, const double *state,
                      const double *seq, integer L, integer n, integer b, double *gm, double *ge) {
  const integer W = 8;  // kept of each element: x, h, cell before, four gates, tanh of the cell
  reals h(L * b), cell(L * b), x(b), y(b), kept(gm ? (n - 1) * L * b * W : 0);
  reals out(gm ? (n - 1) * b : 0), share(gm ? (n - 1) * b : 0);
  for (integer i = 0; i < L * b; ++i) {
    h[i] = state[(i / b) * 2 * b + i % b];
    cell[i] = state[(i / b) * 2 * b + b + i % b];
  }
  double total = 0;
  for (integer t = 0; t + 1 < n; ++t) {
    for (integer j = 0; j < b; ++j) x[j] = seq[t * b + j] * extra[j];
    for (integer i = 0; i < L; ++i) {
      const double *w = main + i * 8 * b, *c = w + 4 * b;
      for (integer j = 0; j < b; ++j) {
        double before = cell[i * b + j], was = h[i * b + j];
        double f = sigmoid(x[j] * w[j] + c[j]), g = sigmoid(was * w[b + j] + c[b + j]);
        double o = sigmoid(x[j] * w[2 * b + j] + c[2 * b + j]);
        double a = std::tanh(was * w[3 * b + j] + c[3 * b + j]);
        double now = before * f + g * a, th = std::tanh(now);
        if (gm) {
          double *k = &kept[((t * L + i) * b + j) * W];
          k[0] = x[j], k[1] = was, k[2] = before, k[3] = f, k[4] = g, k[5] = o, k[6] = a, k[7] = th;
        }
        cell[i * b + j] = now;
        h[i * b + j] = x[j] = o * th;
      }
    }
    double sum = 2;
    for (integer j = 0; j < b; ++j) {
      y[j] = x[j] * extra[b + j] + extra[2 * b + j];
      double e = std::exp(y[j]);
      sum += e;
      if (gm) out[t * b + j] = x[j], share[t * b + j] = e;
    }
    double log = std::log(sum), hits = 0;
    for (integer j = 0; j < b; ++j) {
      total += seq[(t + 1) * b + j] * (y[j] - log);
      hits += seq[(t + 1) * b + j];
    }
    if (gm)
      for (integer j = 0; j < b; ++j)
        share[t * b + j] = seq[(t + 1) * b + j] - hits * share[t * b + j] / sum;
  }
  const double scale = -1.0 / ((n - 1) * b);
  if (!gm) return total * scale;
  std::fill(gm, gm + 8 * L * b, 0.0);
  std::fill(ge, ge + 3 * b, 0.0);
  reals gh(L * b, 0.0), gc(L * b, 0.0), gx(b);
  for (integer t = n - 2; t >= 0; --t) {
    for (integer j = 0; j < b; ++j) {
      double gy = scale * share[t * b + j];
      ge[b + j] += gy * out[t * b + j];
      ge[2 * b + j] += gy;
      gx[j] = gy * extra[b + j];
    }
    for (integer i = L - 1; i >= 0; --i) {
      const double *w = main + i * 8 * b;
      double *gw = gm + i * 8 * b, *gb = gw + 4 * b;
      for (integer j = 0; j < b; ++j) {
        const double *k = &kept[((t * L + i) * b + j) * W];
        double x0 = k[0], was = k[1], before = k[2], f = k[3], g = k[4], o = k[5], a = k[6];
        double th = k[7], out_ = gx[j] + gh[i * b + j];
        double now = gc[i * b + j] + out_ * o * (1 - th * th);
        double zf = now * before * f * (1 - f), zg = now * a * g * (1 - g);
        double zo = out_ * th * o * (1 - o), za = now * g * (1 - a * a);
        gc[i * b + j] = now * f;
        gx[j] = zf * w[j] + zo * w[2 * b + j];
        gh[i * b + j] = zg * w[b + j] + za * w[3 * b + j];
        gw[j] += zf * x0, gw[b + j] += zg * was, gw[2 * b + j] += zo * x0, gw[3 * b + j] += za * was;
        gb[j] += zf, gb[b + j] += zg, gb[2 * b + j] += zo, gb[3 * b + j] += za;
      }
    }
    for (integer j = 0; j < b; ++j) ge[j] += gx[j] * seq[t * b + j];
  }
  return total * scale;
}

double lstm(const double *main, const double *extra, const double *state, const double *seq,
            integer L, integer n, integer b) {
  return network(main, extra, state, seq, L, n, b, nullptr, nullptr);
}

void lstm_gradient(const double *main, const double *extra, const double *state, const double *seq,
                   integer L, integer n, integer b, double *gm, double *ge) {
  network(main, extra, state, seq, L, n, b, gm, ge);
}

// --- bundle adjustment ---------------------------------------------------------------------------

struct V {
  double x, y, z;
};
static V operator+(V a, V b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
static V operator*(double k, V a) { return {k * a.x, k * a.y, k * a.z}; }
static double dot(V a, V b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
static V cross(V a, V b) {
  return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}

static void observe(const double *C, const double *P, double w, const double *feature, double *e,
                    double *rows) {
  V r = {C[0], C[1], C[2]}, X = {P[0] - C[3], P[1] - C[4], P[2] - C[5]};
  double square = dot(r, r), angle = std::sqrt(square), c = 1, s = 0, d = 0;
  V v = r, turn, Y;
  if (square == 0) {
    turn = cross(r, X);
    Y = X + turn;
  } else {
    v = (1 / angle) * r, c = std::cos(angle), s = std::sin(angle);
    turn = cross(v, X), d = dot(v, X);
    Y = c * X + s * turn + (d * (1 - c)) * v;
  }
  double ux = Y.x / Y.z, uy = Y.y / Y.z, rho = ux * ux + uy * uy;
  double bend = 1 + C[9] * rho + C[10] * rho * rho;
  double px = C[6] * ux * bend + C[7] - feature[0], py = C[6] * uy * bend + C[8] - feature[1];
  if (e) e[0] = w * px, e[1] = w * py;
  if (!rows) return;
  for (int k = 0; k < 2; ++k, rows += 15) {
    double bx = k ? 0 : w, by = k ? w : 0, off = k ? py : px;
    double gbend = C[6] * (bx * ux + by * uy), grho = gbend * (C[9] + 2 * C[10] * rho);
    double gux = C[6] * bend * bx + 2 * grho * ux, guy = C[6] * bend * by + 2 * grho * uy;
    V gY = {gux / Y.z, guy / Y.z, -(gux * ux + guy * uy) / Y.z}, gX, gr;
    if (square == 0) {
      gX = gY + cross(gY, r);
      gr = cross(X, gY);
    } else {
      double along = dot(v, gY), gd = (1 - c) * along, gc = dot(X, gY) - d * along;
      V gturn = s * gY, gv = (d * (1 - c)) * gY + cross(X, gturn) + gd * X;
      double gangle = c * dot(turn, gY) - s * gc - dot(gv, v) / angle;
      gX = c * gY + cross(gturn, v) + gd * v;
      gr = (1 / angle) * gv + gangle * v;
    }
    rows[0] = gr.x, rows[1] = gr.y, rows[2] = gr.z;
    rows[3] = -gX.x, rows[4] = -gX.y, rows[5] = -gX.z;
    rows[6] = bend * (bx * ux + by * uy), rows[7] = bx, rows[8] = by;
    rows[9] = gbend * rho, rows[10] = gbend * rho * rho;
    rows[11] = gX.x, rows[12] = gX.y, rows[13] = gX.z, rows[14] = off;
  }
}

double ba(const double *cameras, const double *points, const double *weights, const double *features,
          integer n, integer m, integer p) {
  double sum = 0, e[2];
  for (integer i = 0; i < p; ++i) {
    observe(cameras + 11 * (i % n), points + 3 * (i % m), weights[i], features + 2 * i, e, nullptr);
    sum += e[0] + e[1] + 1 - weights[i] * weights[i];
  }
  return sum;
}

void ba_gradient(const double *cameras, const double *points, const double *weights,
                 const double *features, integer n, integer m, integer p, double *numbers) {
  for (integer i = 0; i < p; ++i)
    observe(cameras + 11 * (i % n), points + 3 * (i % m), weights[i], features + 2 * i, nullptr,
            numbers + 30 * i);
  for (integer i = 0; i < p; ++i) numbers[30 * p + i] = -2 * weights[i];
}
}
