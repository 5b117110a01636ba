"""The run of ``ferret dev bench leakage`` as a page.

``python -m ferret_bench._leakage_page docs/results/leakage/leakage.json`` writes ``leakage.md`` next to the run.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ferret_bench import _markdown
from ferret_core.protocol.formatting import size

Run = Mapping[str, Any]
Row = Mapping[str, Any]
FIGURES = ("text: AUC", "text: found", "token: AUC")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m ferret_bench._leakage_page", description=__doc__)
    parser.add_argument("run", type=Path, help="document of the run")
    path: Path = parser.parse_args(arguments).run
    text = page(json.loads(path.read_text(encoding="utf-8")), path)
    path.with_suffix(".md").write_text(text, encoding="utf-8")
    return 0


def page(run: Run, path: Path) -> str:
    """Renders the document in Markdown; ``path`` is its file."""
    parts = ["# Measured leakage", _about(run)]
    for steps in sorted({row["steps"] for row in run["rounds"]}):
        parts += [f"## One round: {_training(run, steps)}", _rounds(run, steps)]
    if run["final"]:
        parts += ["## The final model", _about_final(run), _final(run)]
    if run["audits"]:
        parts += ["## Protected records", _about_audits(run), _audits(run)]
    parts += ["## Run it again", _again(run, path)]
    return "\n\n".join(parts) + "\n"


ABOUT = """\
`ferret dev bench leakage` with `{model}`, {parameters:,} weights, and texts of {dataset}, at most {max_tokens} tokens.
Local optimizer {optimizer}, rate {rate}. Draws of texts: {draws}. The attacker has the model, the bytes of
the first column and {public} other texts of the same dataset.

- **text: AUC** is the probability that a text behind the bytes scores higher than another: 1 is certainty, 0.5 a blind
  guess. The others are the texts of sites that are not in the contribution or sum, and {outside} that no site used.
- **text: found** is the share of the texts behind the bytes that is found at 1 % false alarms.
- **token: AUC** is the probability for a token of the sites' answers, compared with tokens that are as frequent in the
  attacker's own texts.
- **mean**: the mean of contributions, as two successive models show it. **secure sum**: the same bytes, with
  fewer coordinates because of [masks](../../reference/secure-sums.md).
- **prior**: the same guesses without a contribution, by the model's loss on a text and by a token's frequency. It
  compares all tokens; among tokens of equal frequency it is 0.5 by construction.
- 95 % intervals are in brackets, of a bootstrap over texts and sites. An interval without width at 1 only means that no
  text was missed: a rare miss would not show."""
FINAL = """\
{members} sites train {rounds} rounds, and pass over their examples once in each. Coins draw the examples: half of
{candidates} texts, and half of {candidates} canaries, which are sequences of random tokens. The score is the drop of
the loss since the base model; the prior is the base model's loss on the texts. ε̂ is the
[audit in one run](https://arxiv.org/abs/2305.08846) with {guesses} guesses on canaries. With 95 % confidence no
(ε, 10⁻⁵)-differentially private training with ε < ε̂ reveals as much. {guesses} right guesses would give {ceiling:.1f}.
Each row is one run."""

AUDITED = """\
[Record-level privacy](../../reference/record-privacy.md) with δ = 10⁻⁵ after {rounds} rounds of {sites} sites, audited
with {canaries:,} canaries. The attacker has all models and all sums, and scores a canary by the sums along its own
integers, without the part that {public} other canaries share. **final model: AUC** is for the drop of a canary's loss
since the base model instead. All sites are honest, so the sums have more noise than ε needs. With {guesses} guesses,
{ceiling:.1f} is the largest ε̂ that this audit can find."""


def _about(run: Run) -> str:
    local = run["local"]
    return ABOUT.format(**{**run["sizes"], **run}, optimizer=local["optimizer"], rate=local["learning_rate"])


def _training(run: Run, steps: int) -> str:
    return f"each site trains on {run['texts_per_step'] * steps} texts, in {steps} step{'s' if steps > 1 else ''}"


def _rounds(run: Run, steps: int) -> str:
    rows = [row for row in run["rounds"] if row["steps"] == steps]
    priors = [row for row in run["priors"] if row["steps"] == steps]
    return _markdown.table(["read by the attacker", *FIGURES], map(_cells, [*rows, *priors]), left=1)


def _cells(row: Row) -> list[str]:
    figures = row["texts"]["auc"], row["texts"]["tpr"], row["tokens"]["auc"]
    return [_named(row), *map(_shown, figures)]


def _about_final(run: Run) -> str:
    text = FINAL.format(**{**run["sizes"], **run["final"][0]})
    if skipped := "; ".join(map(_trained, run["skipped"])):
        text += f"\n\n**No time was left for** {skipped}."
    return text


def _final(run: Run) -> str:
    heads = ["training", "text: AUC", "text: found", "canary: AUC", "canary: found", "prior: AUC", "ε̂"]
    return _markdown.table(heads, map(_final_cells, run["final"]), left=1)


def _final_cells(row: Row) -> list[str]:
    figures = [row[kind][figure] for kind in ("texts", "canaries") for figure in ("auc", "tpr")]
    return [_trained(row), *map(_shown, [*figures, row["prior"]["auc"]]), f"{row['epsilon']:.2f}"]


def _about_audits(run: Run) -> str:
    return AUDITED.format(
        **{**run["sizes"]["audit"], **run["audits"][0], "canaries": run["sizes"]["audit"]["canaries"]}
    )


def _audits(run: Run) -> str:
    heads = ["training", "noise multiplier", "sums: AUC", "sums: found", "final model: AUC", "ε̂"]
    return _markdown.table(heads, map(_audit_cells, run["audits"]), left=1)


def _audit_cells(row: Row) -> list[str]:
    name = f"protected, ε = {row['epsilon']:g}" if row["noise"] else "not protected: no noise"
    noise = f"{row['noise_multiplier']:.2f}" if row["noise"] else "0"
    figures = row["sums"]["auc"], row["sums"]["tpr"], row["final"]["auc"]
    return [name, noise, *map(_shown, figures), f"{row['audited']:.2f}"]


def _named(row: Row) -> str:
    if row["sites"] == 1:
        return f"{_method(row)}: one contribution" if row["algorithm"] != "prior" else "prior of one contribution"
    kind = "secure sum" if row["masked"] else "mean"
    return f"{_method(row)}: {kind} of {row['sites']}" if row["algorithm"] != "prior" else f"prior of {row['sites']}"


def _method(row: Row) -> str:
    if row["bytes"] is None:
        return "FedAvg"
    return f"Ferret {_budget(row['bytes'])}, {row['seeds']} seeds"


def _trained(row: Row) -> str:
    return _method(row) + (", secure sums" if row["masked"] else "")


def _budget(count: int) -> str:
    return size(count) if count < 1000 else f"{count // (1000 if count % 1024 else 1024)} kB"


def _shown(estimate: Mapping[str, float]) -> str:
    return "{value:.2f} ({low:.2f}–{high:.2f})".format_map(estimate)


def _again(run: Run, path: Path) -> str:
    source, seconds = f"docs/results/leakage/{path.stem}.toml", f"{run['asked']['max_seconds']:.0f}"
    return (
        f"The experiment is [{path.stem}.toml]({path.stem}.toml), the run [{path.name}]({path.name}).\n\n```console\n"
        f"ferret dev bench leakage {source} --max-seconds {seconds} --json > {path.name}\n"
        f"python -m ferret_bench._leakage_page {path.name}\n```"
    )


if __name__ == "__main__":
    raise SystemExit(main())
