"""The machine and the versions of a measurement."""
import os, pathlib, platform, re, shutil, subprocess, time

HERE = pathlib.Path(__file__).resolve().parent


def describe(args, peers):
    """A few lines with date, machine, versions and duration."""
    lines = [
        time.strftime("%Y-%m-%d %H:%M:%S %Z"),
        f"cpu      {cpu_model()}, {os.cpu_count()} cores, servers on {args.server_cpu}, client on {args.client_cpu};"
        f" governor {read('/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor') or 'unknown'}",
        f"kernel   {platform.release().partition('-')[0]}; vulnerabilities mitigated: {mitigations()}",
        f"load     {', '.join(f'{value:.2f}' for value in os.getloadavg())} (before the run; foreign load is noise)",
        f"rounds   {args.rounds} of {args.seconds} s, seed {args.seed}",
    ]
    if args.engines:
        lines.append(f"tenfold  {version([args.tenfold, '--version'])}, commit {commit()}, engines {', '.join(args.engines)}"
                     + (f", {' '.join(args.option)}" if args.option else ""))
    for peer in args.peers:
        program = next(word for word in peers[peer] if word != "env" and "=" not in word)
        own = pathlib.Path(program).is_absolute()
        lines.append(f"{peer:<9} {'of bench/' if own else version_of(program)}")
    lines.append(f"wrk      {version(['wrk', '-v'])}")
    return "\n".join(lines)


def cpu_model():
    found = re.search(r"model name\s*:\s*(.+)", read("/proc/cpuinfo"))
    return found.group(1) if found else platform.machine()


def mitigations():
    """The number of mitigated vulnerabilities of the processor. Mitigations change the cost of a system call."""
    states = [read(file) for file in pathlib.Path("/sys/devices/system/cpu/vulnerabilities").glob("*")]
    return f"{sum(state.startswith('Mitigation') for state in states)} of {len(states)}"


def commit():
    command = ["git", "-C", str(HERE), "describe", "--always", "--dirty"]
    try:
        return subprocess.run(command, capture_output=True, text=True).stdout.strip() or "unknown"
    except FileNotFoundError:
        return "unknown"


def version_of(server):
    """The version of a server, by its own option."""
    return version([server, "version" if server == "caddy" else "-v"])


def version(command):
    """The first line of a program's output with a number, whatever its exit code is."""
    path = shutil.which(command[0]) or shutil.which(command[0], path="/usr/sbin:/sbin")
    if not path:
        return "missing"
    run = subprocess.run([path, *command[1:]], capture_output=True, text=True)
    lines = [line.strip() for line in (run.stdout + run.stderr).splitlines() if re.search(r"\d\.\d", line)]
    return lines[0] if lines else "unknown"


def read(path):
    """The text of a file without the end of line; empty if there is no file."""
    try:
        return pathlib.Path(path).read_text().strip()
    except OSError:
        return ""
