//! What one method needs beyond counts, genes and batches.

use crate::h5ad::H5ad;
use crate::method::{Profile, Task};

use super::Role;
use super::report::Finding;
use super::wording::{listed, quoted};

/// The columns of obs and entries of obsm without which `profile` cannot run, and whether it can take the role.
pub(super) fn findings(data: &H5ad, profile: &Profile, role: Option<Role>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (wanted, there, slot) in [
        (&profile.input.obs, data.obs().column_names(), "obs"),
        (&profile.input.obsm, data.obsm_keys(), "obsm"),
    ] {
        for key in wanted {
            findings.push(needed(&profile.name, slot, key, there));
        }
    }
    if role.is_some() && !profile.supports(Task::Transfer) && !profile.supports(Task::Finetune) {
        let name = &profile.name;
        findings.push(Finding::warn(
            "no-role",
            format!("{name} does neither transfer nor finetune: --role has no use"),
        ));
    }
    findings
}

fn needed(method: &str, slot: &'static str, key: &str, there: &[String]) -> Finding {
    let entry = format!("{slot}[{}]", quoted(key));
    if there.iter().any(|name| name == key) {
        return Finding::ok("needed-annotation", format!("{entry} is there, as {method} needs"));
    }
    let names = if there.is_empty() {
        format!("{slot} is empty")
    } else {
        format!("{slot} has {}", listed(there, 6))
    };
    Finding::fail("missing-annotation", format!("{method} needs {entry}, and the file has none ({names})"))
}
