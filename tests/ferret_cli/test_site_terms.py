"""``ferret join`` under a ``site.toml``, as an administrator sees it."""

from __future__ import annotations

import json


def test_terms_that_cannot_be_kept_spend_no_code(served, toy_spec, toy_data, tmp_path, ferret_in_process) -> None:
    run = served.service.submit(toy_spec(participants={"edge": 1}))
    code = served.service.enrolment(run.id).code
    own = tmp_path / "site.toml"
    join = ("join", served.service.url, "--data", toy_data[0], "--name", "clinic", "--terms", own)
    for text, said in ((None, "cannot be read"), ("[limits]\nstep = 3\n", "did you mean steps?")):
        if text is not None:
            own.write_text(text)
        refused = ferret_in_process(*join, FERRET_CODE=code)
        assert refused.returncode == 2
        assert said in refused.stderr
        assert "docs/site-terms.md" in refused.stderr

    own.write_text("[allow]\nalgorithms = ['fedavg']\n")
    refused = ferret_in_process(*join, "--json", FERRET_CODE=code)
    assert refused.returncode == 1
    assert json.loads(refused.stdout.splitlines()[-1])["code"] == "terms.refused"
    assert "algorithm.name = 'ferret': this site allows fedavg" in refused.stderr
    assert "change its terms (site.toml)" in refused.stderr
    status = json.loads(ferret_in_process("site", "status", "--terms", own, "--json").stdout)
    assert status["terms"]["allow"]["algorithms"] == ["fedavg"]
    assert [member["name"] for member in status["memberships"]] == ["clinic"]
    run.cancel()
