//! Whose a process is.

use std::os::unix::fs::MetadataExt;

/// The name of a user of this machine, else the number as `user 1000`.
pub fn user_name(uid: u32) -> String {
    let accounts = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    name_in(&accounts, uid).unwrap_or_else(|| format!("user {uid}"))
}

/// The user of a process; none where it is not to be seen from here, as from inside a container.
pub fn owner(pid: u32) -> Option<String> {
    let uid = std::fs::metadata(format!("/proc/{pid}")).ok()?.uid();
    Some(user_name(uid))
}

fn name_in(accounts: &str, uid: u32) -> Option<String> {
    accounts.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(uid)).then(|| name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_by_number() {
        let accounts = "root:x:0:0:root:/root:/bin/bash\nodd line\nann:x:1000:1000::/home/ann:/bin/sh\n";
        assert_eq!(name_in(accounts, 1000).as_deref(), Some("ann"));
        assert_eq!(name_in(accounts, 7), None);
        assert!(owner(std::process::id()).is_some());
    }
}
