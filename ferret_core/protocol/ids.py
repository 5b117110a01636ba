"""Formats of ids and digests. They are safe in paths and URLs."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

SIMULATION = "simulation"
"""Experiment id of a simulation, which has no server to assign one."""

ExperimentId = Annotated[str, Field(pattern=f"^(exp_[0-9a-f]{{16}}|{SIMULATION})$")]
EnrolmentId = Annotated[str, Field(pattern="^enr_[0-9a-f]{16}$")]
ParticipantId = Annotated[str, Field(pattern="^par_[0-9a-f]{16}$")]
AssignmentId = Annotated[str, Field(pattern="^asg_[0-9a-f]{16}$")]
ArtifactId = Annotated[str, Field(pattern="^art_[0-9a-f]{16}$")]
ParticipantName = Annotated[
    str,
    Field(
        pattern="^[A-Za-z0-9][A-Za-z0-9._-]*$",
        min_length=1,
        max_length=64,
        description="Unique in the experiment; letters, digits, dot, dash and underscore",
    ),
]
SecretKey = Annotated[str, Field(pattern="^[0-9a-f]{64}$", description="Ed25519 secret key, in hexadecimal")]
PublicKey = Annotated[str, Field(pattern="^[0-9a-f]{64}$", description="Ed25519 public key, in hexadecimal")]
SignatureText = Annotated[str, Field(pattern="^[0-9a-f]{128}$", description="Ed25519 signature, in hexadecimal")]
Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$", description="BLAKE3-256, 64 lower-case hexadecimal digits")]
AlertId = Annotated[str, Field(pattern="^alr_[0-9a-f]{16}$")]
UserId = Annotated[str, Field(pattern="^(usr_[0-9a-f]{16}|admin)$")]
SessionId = Annotated[str, Field(pattern="^ses_[0-9a-f]{16}$")]
TokenText = Annotated[str, Field(pattern=r"^[\x21-\x7e]{1,512}$")]
"""The secret itself, which is sent in a header."""
TokenId = Annotated[str, Field(pattern="^tok_[0-9a-f]{16}$")]
