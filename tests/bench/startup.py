"""`--help` and `embed --dry-run`: scfoundry against the Python command of the same name. Started by startup.sh."""

import sys
import tempfile
from pathlib import Path

from interleaved import interleave, report, seconds_of

ROUNDS = 31


def main(ours: str, reference: str, data: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        ours_workspace, reference_workspace = Path(folder, "ours"), Path(folder, "reference")
        for program, workspace in ((ours, ours_workspace), (reference, reference_workspace)):
            workspace.mkdir()
            # /bin/true stands for Nextflow: a dry run does not start it, and neither command then looks for another.
            seconds_of([program, "init", str(workspace), "--runtime", "docker", "--nextflow", "/bin/true"], workspace)
        embed = ["embed", "--method", "pca", "--data", data, "--dry-run"]
        for title, arguments, aim in (
            ("--help", ["--help"], "under 15 ms"),
            ("embed --dry-run", embed, "under 50 ms"),
        ):
            seconds = interleave(
                ROUNDS,
                lambda arguments=arguments: seconds_of([ours, *arguments], ours_workspace),
                lambda arguments=arguments: seconds_of([reference, *arguments], reference_workspace),
            )
            report(title, *seconds, unit="ms", scale=1000, aim=aim)


if __name__ == "__main__":
    main(*sys.argv[1:4])
