"""networkx: lengths, flows and ranks of graphs with weights."""

from following import Cases

cases = Cases("networkx")

import networkx as nx


def triangle(a, b, c):
    g = nx.Graph()
    g.add_edge("u", "v", weight=a)
    g.add_edge("v", "w", weight=b)
    g.add_edge("u", "w", weight=c)
    return g


@cases.at(1.0, 2.0, 4.0)
def shortest(a, b, c):
    return nx.dijkstra_path_length(triangle(a, b, c), "u", "w") ** 2


@cases.at(1.0, 2.0, 4.0)
def bellman_ford(a, b, c):
    return nx.bellman_ford_path_length(triangle(a, b, c), "u", "w") ** 2


@cases.at(1.0, 2.0, 4.0)
def spanning_tree(a, b, c):
    return nx.minimum_spanning_tree(triangle(a, b, c)).size(weight="weight") ** 2


@cases.at(1.0, 2.0, 4.0)
def degree(a, b, c):
    return triangle(a, b, c).degree("v", weight="weight") ** 2


@cases.at(1.0, 2.0, 4.0)
def flow(a, b, c):
    g = nx.DiGraph()
    g.add_edge("s", "a", capacity=a)
    g.add_edge("s", "b", capacity=b)
    g.add_edge("a", "t", capacity=c)
    g.add_edge("b", "t", capacity=1.5)
    return nx.maximum_flow_value(g, "s", "t") ** 2


@cases.at(1.0, 2.0, 4.0)
def clustering(a, b, c):
    return nx.clustering(triangle(a, b, c), "u", weight="weight")


@cases.at(1.0, 2.0, 4.0)
def eigenvector(a, b, c):
    return nx.eigenvector_centrality(triangle(a, b, c), weight="weight", tol=1e-12)["v"]


@cases.at(0.85)
def hits(x):
    g = triangle(1.0, 2.0, x)
    return sum(d["weight"] for _, _, d in g.edges(data=True)) ** 2


@cases.at(0.8, 1.0, 2.0)
def rank(alpha, a, b):
    return nx.pagerank(triangle(a, b, 1.5), alpha=alpha, tol=1e-13, max_iter=500)["v"]


@cases.at(1.0, 2.0, 4.0)
def modularity(a, b, c):
    return nx.community.modularity(triangle(a, b, c), [{"u"}, {"v", "w"}])


cases.not_captured("eigenvector", why="its branches lie in each other without end")
cases.not_captured(
    "shortest",
    "spanning_tree",
    "flow",
    why="it compares staged values in compiled code",
)
cases.not_captured("bellman_ford", why="it changes lists in a branch")
cases.not_captured("rank", why="it turns a staged array into a plain one")

test_works, test_refused, test_jitted = cases.tests()
