"""Names of the columns of the tables of a `SearchState`.

Wide rows instead of many arrays: what a move touches of a class or a node is adjacent in memory, and a compiled
function takes few arguments. Where the number of columns depends on the problem, ``head`` says where they begin.
"""

from __future__ import annotations

# The head: sizes of the problem, and where groups of columns begin.
H_NODES = 0
H_CLASSES = 1
H_PODS = 2
H_TIERS = 3
H_CAPACITIES = 4
H_CURVES = 5
H_SCORES = 6
H_PREFERS = 7
H_OPENS = 8
H_DISTINCTS = 9
H_DEVICES = 10
H_MOVE_LIMIT = 11
H_C_MOVE = 12  # [tiers] cost of a pod of the class that leaves its node, then the capacity that it holds there
H_C_UNPLACED = 13  # [tiers] cost of a pod without a node
H_C_CAPACITY = 14  # [capacities] demand
H_C_CURVE = 15  # [curves] demand
H_C_LOAD = 16  # [loads of scores] demand
H_C_SCORED = 17  # [scores] whether a pod of the class is scored
H_C_PREFER = 18  # [prefers] row of the table
H_C_OWN = 19  # [distincts] own things
H_C_BUNDLE = 20  # [distincts] bundle of shared things, or -1
H_C_WHOLE = 21  # [devices] whole devices
H_C_PART = 22  # [devices] share of a device
H_F_ROOM = 23  # [capacities] what the node can hold
H_F_BEFORE = 24  # [capacities] violation at the start
H_F_PENALTY_WEIGHT = 25  # [capacities]
H_F_PIECE = 26  # [curves] first piece of the node's curve, or -1
H_F_PIECES = 27  # [curves] number of pieces
H_F_LOAD = 28  # [loads of scores] capacity
H_F_OPEN = 29  # [opens] cost of the node; 0 if pods outside the problem keep it open
H_F_LIMIT = 30  # [distincts]
H_F_DISTINCT_BEFORE = 31  # [distincts]
H_F_DEVICES = 32  # [devices] devices on the node
H_F_DEVICE_BEFORE = 33  # [devices]
H_F_DEVICE_HELD = 34  # [devices] first held share in `held_parts`
H_F_DEVICE_HELDS = 35  # [devices] number of held shares
H_V_LOAD = 36  # [capacities]
H_V_ARRIVED = 37  # [capacities] newcomers, kept where the capacity was violated at the start
H_V_CURVE = 38  # [curves] load
H_V_VALUE = 39  # [curves] value of the curve there
H_V_USAGE = 40  # [loads of scores]
H_V_SCORED = 41  # [scores] pods scored
H_V_SCORE = 42  # [scores] points they miss, all together
H_V_USED = 43  # [distincts] things on the node
H_V_DISTINCT_ARRIVED = 44
H_V_WHOLE = 45  # [devices] whole devices taken
H_V_DEVICE_VIOLATION = 46
H_V_DEVICE_ARRIVED = 47
H_F_PENALTY = 48  # [capacities] overload of one unit too much
HEAD = 49

# Classes.
C_HOME = 0  # the start node of a class with one pod, or -1; read if C_ROW is -1
C_ROW = 1  # the class's row of `delta`, or -1 for a class with one pod
C_ALLOW = 2  # row of `mask`
C_CHOICE = 3  # the nodes open to the class: choice[C_CHOICE : C_CHOICE_END]
C_CHOICE_END = 4
C_MEMBER = 5  # its relations: member[C_MEMBER : C_MEMBER_END]
C_MEMBER_END = 6
C_COSTED = 7  # whether one of its relations has a cost
C_OPTIONAL = 8  # how many pods of the class may be without a node
C_MISSING = 9  # how many are: the only column that changes
C_POD = 10  # its first pod; a class's pods have consecutive numbers
C_HOMES = 11  # the nodes it started on: home[C_HOMES : C_HOMES_END]
C_HOMES_END = 12
C_FIXED = 13

# Relations: what is counted by domain.
R_KIND = 0
R_TOPOLOGY = 1
R_DOMAINS = 2
R_COUNT = 3  # first counter
R_SLOW = 4  # violated at the start, or over several topologies: recomputed after each change
R_LIMIT = 5  # limit, least number of domains, or max skew
R_FLOOR = 6  # Spread: whether the smallest count is taken as 0
R_TIER = 7
R_WEIGHT = 8
R_STATE = 9  # AtMost: nothing. Occupy: domains in use. Spread: smallest count. Attract: targets. MovePeak: most leavers
R_VIOLATION = 10
R_ILLEGAL = 11
R_BEFORE = 12  # first violation at the start, by place, in `counter`
R_ARRIVED = 13  # first number of newcomers, by place
R_HISTOGRAM = 14  # Spread: domains by count. MovePeak: groups by leavers
R_PIECE = 15
R_PIECES = 16
R_NODE = 17  # Attract, slow: first counter by node
R_TOPOLOGIES = 18  # Attract, slow: first topology in `counter`
R_TOPOLOGIES_END = 19
R_PARTICIPANTS = 20  # its classes: participants[R_PARTICIPANTS : R_PARTICIPANTS_END]
R_PARTICIPANTS_END = 21
R_NEEDS = 22  # Affinity: the relations whose pods it must be next to, in `counter`
R_NEEDS_END = 23
R_NEEDED = 24  # Affinity: the relations that must be next to its pods
R_NEEDED_END = 25
R_COLUMNS = 26

AT_MOST = 0
REPEL = 1
ATTRACT = 2
SPREAD = 3
OCCUPY = 4
DOMAIN_CURVE = 5
PAIR = 6
MOVE_PEAK = 7
AFFINITY = 8  # pods of a set of classes, counted once for all `Attract` rules that name the set

# Roles in a relation.
BOTH = 0
SEEKER = 1
TARGET = 2

# Pods.
P_CLASS = 0
P_NODE = 1
P_SLOT = 2

# Behind the tiers in `value`.
HELD = 0  # capacity that moved pods hold on nodes they left, up to a constant
ILLEGAL = 1  # number of illegal places; 0 if the placement is feasible
MOVED = 2  # pods that left their node
UNPLACED = 3  # pods without a node
OVERLOAD = 4  # by how much capacities are violated that were not at the start
OVERLOADED = 5  # how many of the illegal places come from that
VALUES = 6
