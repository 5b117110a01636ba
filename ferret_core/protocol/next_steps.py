"""What those who run experiments do about an error, by its code: said by the command line and in tracebacks."""

from __future__ import annotations

NEXT_STEPS: dict[str, str] = {
    "auth.missing": "set FERRET_HOME to the server's folder, or FERRET_TOKEN to the token in its admin.token",
    "auth.invalid": "set FERRET_TOKEN to the token in the server's FERRET_HOME/admin.token",
    "enrolment.invalid": "ask the person who runs the experiment for a new code",
    "experiment.not_found": "list the experiments: ferret experiment list",
    "enrolment.not_found": "list them: ferret experiment codes ID",
    "participant.not_found": "list them: ferret experiment participants ID",
    "participant.conflict": "see its state: ferret experiment participants ID",
    "user.not_found": "list them: ferret user list",
    "token.not_found": "list them: ferret token list",
    "experiment.conflict": "see its state: ferret experiment show ID",
    "extension.refused": "run a copy with more rounds: ferret experiment clone ID --set rounds=N",
    "artifact.not_found": "see what was written: ferret experiment show ID",
    "round.too_small": "export another round: ferret experiment export ID FOLDER --round N; see docs/people.md",
    "home.in_use": "use that server, stop it, or choose another folder with --home",
    "server.unreachable": "check the address (FERRET_URL or --url); to run a server on this machine: ferret serve",
    "server.not_ready": "see what is missing: ferret doctor",
    "setup.missing": "see what else is missing: ferret doctor",
    "tune.changed": "begin a study of its own in another folder with --out, or set the values back",
    "tune.in_use": "wait for it, stop it, or choose another folder with --out",
    "tune.no_result": "choose other ranges, and another folder with --out",
    "internal": "run the command again as ferret --debug … to see the traceback",
}
