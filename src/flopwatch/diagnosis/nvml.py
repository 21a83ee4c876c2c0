"""NVIDIA's management library through ctypes, for machines that have it but not nvidia-smi (usual in containers)."""

from __future__ import annotations

import ctypes

LIBRARY = "libnvidia-ml.so.1"
NAME_BYTES = 96  # NVML_DEVICE_NAME_V2_BUFFER_SIZE of nvml.h


class _Memory(ctypes.Structure):
    """`nvmlMemory_t`, in bytes."""

    _fields_ = (("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong))


def rows(library: str = LIBRARY) -> list[str]:
    """A line for each GPU as `nvidia-smi --query-gpu=name,driver_version,compute_cap,memory.total` prints it.

    OSError if the library cannot be loaded; RuntimeError with the number of the call's answer if it refuses.
    """
    nvml = ctypes.CDLL(library)

    def call(name: str, *arguments: object) -> None:
        answer = getattr(nvml, name)(*arguments)
        if answer:
            raise RuntimeError(f"{name} answers {answer}")

    call("nvmlInit_v2")
    try:
        count, driver = ctypes.c_uint(), ctypes.create_string_buffer(NAME_BYTES)
        call("nvmlSystemGetDriverVersion", driver, NAME_BYTES)
        call("nvmlDeviceGetCount_v2", ctypes.byref(count))
        found = []
        for index in range(count.value):
            device, name, memory = ctypes.c_void_p(), ctypes.create_string_buffer(NAME_BYTES), _Memory()
            major, minor = ctypes.c_int(), ctypes.c_int()
            call("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(index), ctypes.byref(device))
            call("nvmlDeviceGetName", device, name, NAME_BYTES)
            call("nvmlDeviceGetCudaComputeCapability", device, ctypes.byref(major), ctypes.byref(minor))
            call("nvmlDeviceGetMemoryInfo", device, ctypes.byref(memory))
            values = (
                name.value.decode(),
                driver.value.decode(),
                f"{major.value}.{minor.value}",
                f"{memory.total >> 20} MiB",
            )
            found.append(", ".join(values))
        return found
    finally:
        nvml.nvmlShutdown()
