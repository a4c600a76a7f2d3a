"""Text: language models, alignments, embeddings, counts of words."""

import math
import re
from collections import Counter, defaultdict

import numpy as np

from gallery.snippets import at, some

SENTENCE = "the cat sat on the mat and the dog sat on the cat"
WORDS = SENTENCE.split()
VOCABULARY = sorted(set(WORDS))
INDEX = {word: i for i, word in enumerate(VOCABULARY)}
V = len(VOCABULARY)


@at(some(V, V, seed=1))
def bigram_model(logits):
    ll = 0.0
    for a, b in zip(WORDS[:-1], WORDS[1:]):
        row = logits[INDEX[a]]
        ll += row[INDEX[b]] - np.log(np.sum(np.exp(row)))
    return -ll / (len(WORDS) - 1)


@at(some(V, 4, seed=2), some(V, 4, seed=3))
def skip_gram(word_vectors, context_vectors):
    loss = 0.0
    for i, w in enumerate(WORDS):
        for j in range(max(0, i - 1), min(len(WORDS), i + 2)):
            if i != j:
                score = word_vectors[INDEX[w]] @ context_vectors[INDEX[WORDS[j]]]
                loss += np.log1p(np.exp(-score))
    return loss


@at({word: 0.1 * len(word) for word in VOCABULARY})
def bag_of_words_sentiment(weights):
    counts = Counter(WORDS)
    score = sum(weights[w] * n for w, n in counts.items())
    return math.log(1 + math.exp(-score))


@at(1.5, 0.75)
def bm25(k1, b):
    docs = ["the cat", "the dog sat on the cat", "a mat"]
    mean = sum(len(d.split()) for d in docs) / len(docs)
    total = 0.0
    for doc in docs:
        words = doc.split()
        tf = words.count("cat")
        total += tf * (k1 + 1) / (tf + k1 * (1 - b + b * len(words) / mean))
    return total


@at(0.4, 0.6, 1.1)
def soft_edit_distance(insert, delete, substitute):
    a, b = "kitten", "sitting"
    table = np.zeros((len(a) + 1, len(b) + 1))
    table[1:, 0] = delete * np.arange(1, len(a) + 1)
    table[0, 1:] = insert * np.arange(1, len(b) + 1)
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            same = a[i - 1] == b[j - 1]
            choices = np.array(
                [
                    table[i - 1, j] + delete,
                    table[i, j - 1] + insert,
                    table[i - 1, j - 1] + (0 if same else substitute),
                ]
            )
            table[i, j] = -0.2 * np.log(np.sum(np.exp(-choices / 0.2)))
    return table[-1, -1]


@at(some(3, 3, seed=4), some(3, V, seed=5))
def hidden_markov_model(transition, emission):
    T = transition / transition.sum(axis=1, keepdims=True)
    E = emission / emission.sum(axis=1, keepdims=True)
    alpha = np.full(3, 1 / 3) * E[:, INDEX[WORDS[0]]]
    ll = 0
    for w in WORDS[1:]:
        scale = alpha.sum()
        ll += np.log(scale)
        alpha = (alpha / scale) @ T * E[:, INDEX[w]]
    return ll + np.log(alpha.sum())


@at(some(5, 3, seed=6))
def conditional_random_field(scores):
    moves = 0.1 * np.arange(9.0).reshape(3, 3)
    gold = [0, 2, 1, 1, 0]
    path = sum(scores[t, k] for t, k in enumerate(gold))
    path += sum(moves[a, b] for a, b in zip(gold, gold[1:]))
    forward = scores[0]
    for t in range(1, 5):
        forward = np.logaddexp.reduce(forward[:, None] + moves, axis=0) + scores[t]
    return np.logaddexp.reduce(forward) - path


@at(some(6, 4, seed=7), some(4, 4, seed=8))
def self_attention(x, Wq):
    q = x @ Wq
    scores = q @ x.T / math.sqrt(4)
    causal = np.tril(np.ones((6, 6), dtype=bool))
    scores = np.where(causal, scores, -1e9)
    p = np.exp(scores - scores.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    return ((p @ x) ** 2).mean()


@at(some(V, 3, seed=9))
def cosine_similarity(E):
    a, b = E[INDEX["cat"]], E[INDEX["dog"]]
    return a @ b / (np.linalg.norm(a) * np.linalg.norm(b))


@at(0.3)
def kneser_ney(discount):
    followers = defaultdict(set)
    for a, b in zip(WORDS, WORDS[1:]):
        followers[a].add(b)
    count = Counter(WORDS[:-1])
    total = 0.0
    for (a, b), n in Counter(zip(WORDS, WORDS[1:])).items():
        kept = max(n - discount, 0) / count[a]
        backoff = discount * len(followers[a]) / count[a] / V
        total += n * math.log(kept + backoff)
    return total


@at(some(26, seed=10))
def letter_weights(weights):
    letters = re.findall(r"[a-z]", SENTENCE)
    return np.prod([weights[ord(c) - ord("a")] ** 0.1 for c in letters])


@at({"W": some(4, 4, seed=11), "U": some(4, V, seed=12), "b": some(4, seed=13)})
def recurrent_network(p):
    h = np.zeros(4)
    for w in WORDS:
        h = np.tanh(p["W"] @ h / 2 + p["U"][:, INDEX[w]] + p["b"])
    return h.sum()


@at(some(4, 5, seed=14), some(5, seed=15))
def ctc_alignment(logits, bias):
    probs = np.exp(logits + bias)
    probs = probs / probs.sum(axis=1, keepdims=True)
    target = [0, 1, 0, 2, 0]
    alpha = [0.0] * 5
    alpha[0], alpha[1] = probs[0, 0], probs[0, 1]
    for t in range(1, 4):
        new = []
        for s, k in enumerate(target):
            total = alpha[s] + (alpha[s - 1] if s > 0 else 0.0)
            if s > 1 and k != 0 and target[s - 2] != k:
                total = total + alpha[s - 2]
            new.append(total * probs[t, k])
        alpha = new
    return -np.log(alpha[-1] + alpha[-2])


@at(some(3, seed=16), 1.2)
def temperature_and_entropy(logits, temperature):
    p = np.exp(logits / temperature)
    p /= p.sum()
    return -(p * np.log(p)).sum()


@at(some(V, 3, seed=17), some(3, seed=18))
def weighted_average_of_word_vectors(E, direction):
    weight = {w: 1e-3 / (1e-3 + n / len(WORDS)) for w, n in Counter(WORDS).items()}
    mean = sum(weight[w] * E[INDEX[w]] for w in WORDS) / len(WORDS)
    mean = mean - (mean @ direction) * direction / (direction @ direction)
    return np.sum(mean**2) + mean[0]


@at(some(6, seed=20), some(7, seed=21), kinked=True)
def edit_distance_of_signals(a, b):
    n, m = len(a), len(b)
    dp = [[0.0] * (m + 1) for _ in range(n + 1)]
    for i in range(1, n + 1):
        dp[i][0] = 0.4 * i
    for j in range(1, m + 1):
        dp[0][j] = 0.4 * j
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            change = dp[i - 1][j - 1] + abs(a[i - 1] - b[j - 1])
            dp[i][j] = min(dp[i - 1][j] + 0.4, dp[i][j - 1] + 0.4, change)
    return dp[n][m]


@at(some(6, seed=22), some(7, seed=23), 0.3, kinked=True)
def needleman_wunsch(a, b, gap):
    score = [[-gap * j for j in range(len(b) + 1)]]
    for i in range(1, len(a) + 1):
        row = [-gap * i]
        for j in range(1, len(b) + 1):
            match = score[i - 1][j - 1] + 1 - (a[i - 1] - b[j - 1]) ** 2
            row.append(max(match, score[i - 1][j] - gap, row[j - 1] - gap))
        score.append(row)
    return score[-1][-1]


@at(some(6, seed=24), some(5, seed=25), kinked=True)
def dynamic_time_warping(a, b):
    before = [0.0] + [1e3] * len(b)
    for x in a:
        now = [1e3] * (len(b) + 1)
        for j in range(1, len(b) + 1):
            now[j] = (x - b[j - 1]) ** 2 + min(before[j], now[j - 1], before[j - 1])
        before = now
    return before[-1]
