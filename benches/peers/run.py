#!/usr/bin/env python3
"""Measures Taciturn and other CKKS libraries in one sitting, one thread each, and prints ratios.

    benches/peers/run.py                       primitives, and a bootstrap of 2^15 complex slots
    benches/peers/run.py --what primitives     without the bootstrap (which takes minutes and up to 20 GB)
    benches/peers/run.py --slots 10            a bootstrap of 2^10 slots (Taciturn and Lattigo)
    benches/peers/run.py --json                one JSON object instead of tables

A library whose tools are missing is left out, with a line that says why.
"""

import argparse
import json
import math
import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
# Levels of Taciturn and Lattigo, with the width in bits that poulpy is measured at in their place.
ROWS = [("all", 1400), (13, 570), (7, 330), (4, 210), (1, 90)]
OPERATIONS = [("rotation", "rotate_ms"), ("product, relinearized, rescaled", "product_rescale_ms")]


def say(line):
    print(line, file=sys.stderr, flush=True)


def run(command, cwd, **environment):
    """The standard output of a command; what it says otherwise goes to the terminal."""
    say(f"{cwd}: {' '.join(map(str, command))}")
    done = subprocess.run(command, cwd=cwd, env=os.environ | environment, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))} ended with {done.returncode}")
    return done.stdout


def target(folder):
    return pathlib.Path(os.environ.get("CARGO_TARGET_DIR", folder / "target"))


class Taciturn:
    name = "taciturn"

    def missing(self):
        return None if shutil.which("cargo") else "cargo is not installed"

    def build(self):
        run(["cargo", "build", "--release", "--locked", "-p", "taciturn"], ROOT)
        self.program = target(ROOT) / "release" / "taciturn"

    def primitives(self):
        return json.loads(run([self.program, "bench", "primitives", "--threads", "1", "--json"], ROOT))

    def bootstrap(self, slots, runs):
        flags = ["--slots", str(slots), "--level", "13", "--runs", str(runs), "--threads", "1", "--complex", "--json"]
        return json.loads(run([self.program, "bench", "bootstrap", *flags], ROOT))


class Lattigo:
    name = "lattigo"
    folder = HERE / "lattigo"
    one = {"GOMAXPROCS": "1"}

    def missing(self):
        return None if shutil.which("go") else "go is not installed"

    def build(self):
        run(["go", "build", "-o", "peer", "."], self.folder)

    def primitives(self):
        report = json.loads(run(["./peer", "-what", "primitives"], self.folder, **self.one))
        for level in report["levels"]:
            level["digits"] = math.ceil((level["level"] + 1) / report["limbs_p"])
        return report

    def bootstrap(self, slots, runs):
        flags = ["-what", "bootstrap", "-slots", str(slots), "-runs", str(runs)]
        # The scale of the parameters in main.go.
        return json.loads(run(["./peer", *flags], self.folder, **self.one)) | {"level_bits": 41}


class Poulpy:
    name = "poulpy"
    folder = HERE / "poulpy"

    def missing(self):
        if not shutil.which("cargo"):
            return "cargo is not installed"
        nightly = subprocess.run(["cargo", "+nightly", "--version"], capture_output=True)
        if nightly.returncode != 0:
            return "it needs a nightly Rust toolchain (rustup toolchain install nightly)"
        processor = pathlib.Path("/proc/cpuinfo")
        if not processor.exists() or "avx512ifma" not in processor.read_text():
            return "its fastest backend needs AVX-512 IFMA, which this processor does not have"
        return None

    def build(self):
        run(["cargo", "+nightly", "build", "--release", "--locked"], self.folder, RUSTFLAGS="-C target-cpu=native")
        self.program = target(self.folder) / "release" / "poulpy-peer"

    def primitives(self):
        return json.loads(run([self.program, "primitives"], self.folder))

    def bootstrap(self, slots, runs):
        if slots != 15:
            say(f"poulpy: left out of the bootstrap of 2^{slots} slots: its parameter sets are for 2^15")
            return None
        return json.loads(run([self.program, "bootstrap", str(runs)], self.folder))


def place(report, level, bits):
    """A library's figures at a level, or at the width that stands for it."""
    if report is None:
        return None
    levels = report["levels"]
    if "bits" in levels[0]:
        return next((l for l in levels if l["bits"] == bits), None)
    if level == "all":
        return max(levels, key=lambda l: l["level"])
    return next((l for l in levels if l["level"] == level), None)


def size(figures):
    if "bits" in figures:
        return f"{figures['bits']} bits"
    return f"{figures['level'] + 1} limbs"


def primitive_rows(reports):
    rows = []
    transforms = {name: {"ms": r["ntt_ms"], "size": "1 limb"} for name, r in reports.items() if r and "ntt_ms" in r}
    rows.append({"operation": "NTT", "level": None, "figures": transforms})
    for title, field in OPERATIONS:
        for level, bits in ROWS:
            figures = {}
            for name, report in reports.items():
                at = place(report, level, bits)
                if at:
                    figures[name] = {"ms": at[field], "size": size(at), "digits": at["digits"]}
            rows.append({"operation": title, "level": level, "figures": figures})
    return rows


def bootstrap_row(reports, slots):
    figures = {}
    for name, report in reports.items():
        if not report:
            continue
        # SlotsToCoeffs of the next bootstrap takes its levels from what is left, where it comes first.
        left = report.get("output_level", 0) - report.get("input_level", 0)
        levels = f"{left} levels of {report['level_bits']}" if "output_level" in report else f"{report['bits_left']} bits"
        figures[name] = {
            "ms": report["bootstrap_ms"],
            "left": levels,
            "bits_min": report["bits_min"],
            "bits_mean": report["bits_mean"],
            "peak_rss_bytes": report["peak_rss_bytes"],
        }
    return {"operation": f"bootstrap, 2^{slots} complex slots", "level": None, "figures": figures}


def add_ratios(rows):
    """How many times as long as Taciturn each takes."""
    for row in rows:
        ours = row["figures"].get("taciturn")
        for figures in row["figures"].values():
            figures["ratio"] = figures["ms"] / ours["ms"] if ours else None


def cell(figures):
    if figures is None:
        return "-"
    ms = figures["ms"]
    parts = [f"{ms / 1e3:.2f} s" if ms >= 1e3 else f"{ms:.3g} ms"]
    parts += [f"x{figures['ratio']:.2f}"] if figures.get("ratio") else []
    parts += [figures[key] for key in ("size", "left") if key in figures]
    parts += [f"{figures['digits']} digits"] if "digits" in figures else []
    if "bits_min" in figures:
        parts.append(f"{figures['bits_min']:.1f} worst {figures['bits_mean']:.1f} mean bits")
        parts.append(f"{figures['peak_rss_bytes'] / 1e9:.1f} GB")
    return ", ".join(parts)


def table(names, rows):
    titles = ["operation (level)", *names]
    lines = [[row["operation"] + ("" if row["level"] is None else f" ({row['level']})")]
             + [cell(row["figures"].get(name)) for name in names] for row in rows]
    widths = [max(len(line[i]) for line in [titles, *lines]) for i in range(len(titles))]
    for line in [titles, *lines]:
        print("  ".join(text.ljust(width) for text, width in zip(line, widths)).rstrip())


def processor():
    path = pathlib.Path("/proc/cpuinfo")
    fields = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        key, _, value = line.partition(":")
        fields.setdefault(key.strip(), value.strip())
    return {key.replace(" ", "_"): fields.get(key, "") for key in ("model name", "cpu family", "model")}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--what", choices=["primitives", "bootstrap", "both"], default="both")
    parser.add_argument("--libraries", nargs="+", choices=["lattigo", "poulpy"], default=["lattigo", "poulpy"])
    parser.add_argument("--slots", type=int, nargs="+", choices=range(1, 16), default=[15], metavar="LOG2")
    parser.add_argument("--runs", type=int, default=3, help="counted bootstraps")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    chosen = parser.parse_args()
    if chosen.runs < 1:
        parser.error(f"--runs: expected at least 1, got {chosen.runs}")
    return chosen


def main():
    chosen = arguments()
    libraries = [Taciturn()] + [l for l in (Lattigo(), Poulpy()) if l.name in chosen.libraries]
    present = []
    for library in libraries:
        reason = library.missing()
        if reason is None:
            try:
                library.build()
            except RuntimeError as error:
                reason = f"it could not be built: {error}"
        if reason is None:
            present.append(library)
        else:
            say(f"{library.name}: left out: {reason}")
    if not present or present[0].name != "taciturn":
        sys.exit("nothing to compare with: Taciturn itself could not be built")
    names = [library.name for library in present]

    # One after the other: nothing of ours runs beside what is measured.
    rows, raw = [], {}
    if chosen.what != "bootstrap":
        raw["primitives"] = {library.name: library.primitives() for library in present}
        rows += primitive_rows(raw["primitives"])
    if chosen.what != "primitives":
        for slots in chosen.slots:
            reports = {library.name: library.bootstrap(slots, chosen.runs) for library in present}
            raw[f"bootstrap_{slots}"] = reports
            rows.append(bootstrap_row(reports, slots))
    add_ratios(rows)
    if chosen.json:
        print(json.dumps({"processor": processor(), "threads": 1, "rows": rows, "reports": raw}))
    else:
        shown = processor()
        print(f"{shown['model_name']}, family {shown['cpu_family']}, model {shown['model']}; one thread each;"
              " xR: R times as long as Taciturn")
        table(names, rows)


if __name__ == "__main__":
    main()
