"""The openb cluster of GPUs as a benchmark: place the pods of a list once, on as many devices as possible.

A pod asks for CPU, memory, and either whole devices or a share of one; some name the models they run on.
"""

from stowplan.instances.suites.openb.instance import DeviceInstance
from stowplan.instances.suites.openb.lists import Cluster, read_lists
from stowplan.instances.suites.openb.placing import DeviceProblem, check_devices, device_problem

__all__ = ["Cluster", "DeviceInstance", "DeviceProblem", "check_devices", "device_problem", "read_lists"]
