//! Words for a POSIX shell.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// A word that a shell takes for exactly these bytes: as it is where nothing in it is special, else in single quotes.
pub fn word(word: &OsStr) -> Vec<u8> {
    let bytes = word.as_bytes();
    let safe = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-./=:,@%+".contains(byte);
    if !bytes.is_empty() && bytes.iter().all(safe) {
        return bytes.to_vec();
    }
    let mut quoted = vec![b'\''];
    for byte in bytes {
        match byte {
            b'\'' => quoted.extend_from_slice(b"'\\''"),
            other => quoted.push(*other),
        }
    }
    quoted.push(b'\'');
    quoted
}

/// As [`word`], for people and for configuration files: bytes that are no UTF-8 are replaced.
pub fn text(text: impl AsRef<OsStr>) -> String {
    String::from_utf8_lossy(&word(text.as_ref())).into_owned()
}

/// Words as one line that a shell takes apart again; for people to read.
pub fn line<S: AsRef<OsStr>>(words: &[S]) -> String {
    words.iter().map(text).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_shell_gives_back_every_byte() {
        let hostile = ["", "two words", "it's", "$HOME;`id`", "\\", "γδ", "a\nb"];
        let script = format!("printf '%s\\0' {}", line(&hostile));
        let output = Command::new("sh").arg("-c").arg(script).output().unwrap();
        let words: Vec<&[u8]> = output.stdout.split(|byte| *byte == 0).collect();
        let expected: Vec<&[u8]> = hostile.iter().map(|word| word.as_bytes()).collect();
        assert_eq!(words[..words.len() - 1], expected[..]);
        assert_eq!(text("a/b-c"), "a/b-c");
    }
}
