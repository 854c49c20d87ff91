//! Runs the reference implementations: `SCFOUNDRY_TEST_PYTHON` names a Python that has the packages of `requirements.txt`.

use std::ffi::OsStr;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// What `tests/judge/SCRIPT` prints. It is given words, and `input` on stdin. Fails if the script does.
pub fn run<S: AsRef<OsStr>>(script: &str, words: &[S], input: &str) -> Vec<u8> {
    let python = std::env::var_os("SCFOUNDRY_TEST_PYTHON").expect(
        "set SCFOUNDRY_TEST_PYTHON to a Python that has the packages of tests/judge/requirements.txt",
    );
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/judge").join(script);
    let mut child = Command::new(python)
        .arg(script)
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("Python starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    if !input.is_empty() {
        stdin.write_all(input.as_bytes()).expect("the script reads its input");
    }
    drop(stdin);
    let output = child.wait_with_output().expect("Python ends");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}
