"""A real Slurm of one node, in a folder of its own: munged, slurmctld and slurmd from Debian's packages.

Where they are missing, root installs them on the system (system_packages.py). Slurm's daemons run as root, so for
anybody else the test is skipped.
"""

import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from tests.system_packages import require

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "scontrol", "squeue", "scancel", "sinfo")
PACKAGES = ("slurm-wlm", "munge")

CONFIG = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ctld_port}
SlurmdPort={slurmd_port}
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=5
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_interval=2,bf_interval=2
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
ReturnToService=2
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory={memory_mb} State=UNKNOWN
PartitionName=low Nodes=ALL Default=YES MaxTime=INFINITE State=UP PriorityTier=1 PreemptMode=REQUEUE GraceTime=180
PartitionName=high Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=10 PreemptMode=OFF
"""


def require_slurm() -> None:
    """Skip the test unless there is a Slurm that we may start."""
    if os.geteuid() != 0:
        pytest.skip("only root may start Slurm's daemons")
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    require(PROGRAMS, PACKAGES)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(condition: Callable[[], object], what: str, seconds: float = 60) -> None:
    deadline = time.time() + seconds
    while not condition():
        assert time.time() < deadline, f"no {what} within {seconds:.0f} s"
        time.sleep(0.5)


class Cluster:
    """The running Slurm; commands reach it through `environment`."""

    def __init__(self, folder: Path, cpus: int) -> None:
        self.folder = folder
        self.processes: list[subprocess.Popen] = []
        self.environment = os.environ | {"SLURM_CONF": str(folder / "slurm.conf")}
        for name in ("state", "spool"):
            (folder / name).mkdir(parents=True)
        folder.chmod(0o755)  # munge wants its socket to be reachable
        text = CONFIG.format(
            folder=folder,
            host=socket.gethostname(),
            ctld_port=free_port(),
            slurmd_port=free_port(),
            cpus=cpus,
            memory_mb=psutil.virtual_memory().total // 2**20 - 512,
        )
        (folder / "slurm.conf").write_text(text)
        (folder / "munge.key").write_bytes(os.urandom(128))
        (folder / "munge.key").chmod(0o400)

    def start(self) -> None:
        files = [f"--{kind}-file={self.folder}/munge.{kind}" for kind in ("key", "log", "pid", "seed")]
        self._spawn("munged", "--foreground", "--force", f"--socket={self.folder}/munge.socket", *files)
        wait_for((self.folder / "munge.socket").exists, "munge socket")
        self._spawn("slurmctld", "-D", "-f", str(self.folder / "slurm.conf"))
        self._spawn("slurmd", "-D", "-f", str(self.folder / "slurm.conf"))
        wait_for(lambda: "idle" in self.run("sinfo", "--noheader", "--format=%T", check=False), "idle node")

    def _spawn(self, *words: str) -> None:
        with (self.folder / f"{words[0]}.out").open("wb") as log:
            self.processes.append(
                subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.environment)
            )

    def run(self, *words: str, check: bool = True) -> str:
        result = subprocess.run(
            words, env=self.environment, check=check, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
        )
        return result.stdout

    def queue(self) -> list[str]:
        return self.run("squeue", "--noheader", "--array", "--format=%F_%K %T").split("\n")[:-1]

    def stop(self) -> None:
        """End all jobs, then the daemons, the newest first."""
        if len(self.processes) == 3 and all(process.poll() is None for process in self.processes):
            self.run("scancel", "--user=root", check=False)
            wait_for(lambda: not self.queue(), "empty queue", 120)
        for process in reversed(self.processes):
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextmanager
def slurm(folder: Path, cpus: int = 2) -> Iterator[Cluster]:
    cluster = Cluster(folder, cpus)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
