//! What `nvidia-smi` says of the machine's cards.

use std::path::Path;
use std::process::Command;

use serde::Serialize;

use super::people;
use crate::ask::{PATIENCE, ask};

const FIELDS: &str = "index,uuid,name,memory.total,memory.used,memory.free,utilization.gpu";
/// Unknown to drivers before 450.
const DIVIDED: &str = "mig.mode.current";
const PROCESS_FIELDS: &str = "gpu_uuid,used_memory,pid,process_name";
const MIB: u64 = 1 << 20;

/// A card. A number that `nvidia-smi` does not tell (`[N/A]`) is absent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Card {
    pub index: u32,
    pub uuid: Option<String>,
    pub name: String,
    pub total_bytes: Option<u64>,
    pub used_bytes: Option<u64>,
    pub free_bytes: Option<u64>,
    pub utilisation_percent: Option<u32>,
    /// Its parts are handed out singly (MIG), not the card.
    pub divided: bool,
    /// Those that compute on it, without this one.
    pub processes: Vec<Process>,
}

/// A process that computes on a card.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Process {
    pub pid: u32,
    /// Without its path; empty where it is not known.
    pub name: String,
    pub user: Option<String>,
    pub used_bytes: Option<u64>,
}

/// Why no card is to be seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unseen {
    /// Half a sentence.
    pub reason: String,
    /// There may be cards all the same.
    pub may_exist: bool,
}

/// The machine's cards in the order of their numbers, at least one.
///
/// # Errors
/// Why none is to be seen.
pub fn survey() -> Result<Vec<Card>, Unseen> {
    let whole = format!("{FIELDS},{DIVIDED}");
    let (answer, fields) = match query("gpu", &whole) {
        Err(reason) if reason.contains("not a valid field") => (query("gpu", FIELDS), FIELDS),
        answer => (answer, whole.as_str()),
    };
    let text = answer.map_err(Unseen::because)?;
    let mut cards = cards(&text, fields.split(',').count()).map_err(Unseen::because)?;
    // Without its processes a card is still judged by its memory.
    let running = query("compute-apps", PROCESS_FIELDS).unwrap_or_default();
    add_processes(&mut cards, &running);
    Ok(cards)
}

fn query(what: &str, fields: &str) -> Result<String, String> {
    let mut command = Command::new("nvidia-smi");
    command.args([format!("--query-{what}={fields}").as_str(), "--format=csv,noheader,nounits"]);
    ask(&mut command, PATIENCE)
}

impl Unseen {
    fn because(reason: String) -> Unseen {
        let device = ["/dev/nvidiactl", "/dev/dxg"].iter().any(|path| Path::new(path).exists());
        Unseen { may_exist: may_exist(&reason, device), reason: plain(&reason) }
    }
}

/// Whether there may be cards although the tool shows none; `device`: the driver's device is there.
fn may_exist(reason: &str, device: bool) -> bool {
    let none = ["No devices were found", "communicate with the NVIDIA driver", "shows no card"];
    match reason {
        _ if none.iter().any(|sign| reason.contains(sign)) => false,
        _ if reason.contains("not found in PATH") => device,
        _ => true,
    }
}

/// Rows that cannot be read are passed over, as that of a card that has fallen off the bus.
fn cards(text: &str, fields: usize) -> Result<Vec<Card>, String> {
    let mut cards: Vec<Card> = text.lines().filter_map(|line| card(line, fields)).collect();
    cards.sort_by_key(|card| card.index);
    cards.dedup_by_key(|card| card.index);
    match text.lines().find(|line| !line.trim().is_empty()) {
        _ if !cards.is_empty() => Ok(cards),
        Some(line) => Err(format!("nvidia-smi says what cannot be read: {line}")),
        None => Err("nvidia-smi shows no card".to_owned()),
    }
}

fn card(line: &str, fields: usize) -> Option<Card> {
    let parts: Vec<&str> = line.split(',').map(str::trim).collect();
    // A name may hold commas.
    let after = parts.len().checked_sub(fields - 3)?;
    let name = parts.get(2..after).filter(|name| !name.is_empty())?.join(", ");
    let bytes = |position: usize| number(parts[after + position]).and_then(|mib| mib.checked_mul(MIB));
    Some(Card {
        index: parts[0].parse().ok()?,
        uuid: Some(parts[1]).filter(|uuid| uuid.starts_with("GPU-")).map(str::to_owned),
        name,
        total_bytes: bytes(0),
        used_bytes: bytes(1),
        free_bytes: bytes(2),
        utilisation_percent: number(parts[after + 3]).and_then(|percent| u32::try_from(percent).ok()),
        divided: parts.get(after + 4) == Some(&"Enabled"),
        processes: Vec::new(),
    })
}

fn number(text: &str) -> Option<u64> {
    text.split_whitespace().next()?.parse().ok()
}

fn add_processes(cards: &mut [Card], text: &str) {
    let own = std::process::id();
    for line in text.lines() {
        let parts: Vec<&str> = line.splitn(4, ',').map(str::trim).collect();
        let [uuid, memory, pid, name] = parts.as_slice() else { continue };
        let card = cards.iter_mut().find(|card| card.uuid.as_deref() == Some(uuid));
        let pid = pid.parse().ok().filter(|pid| *pid != own);
        if let (Some(card), Some(pid)) = (card, pid) {
            let name = name.rsplit('/').next().filter(|name| !name.starts_with('[')).unwrap_or_default();
            card.processes.push(Process {
                pid,
                name: plain(name),
                user: people::owner(pid),
                used_bytes: number(memory).and_then(|mib| mib.checked_mul(MIB)),
            });
        }
    }
}

/// Fit for one line of a message.
fn plain(text: &str) -> String {
    const LONGEST: usize = 160;
    text.trim().chars().take(LONGEST).map(|c| if c.is_control() { '?' } else { c }).collect()
}

#[cfg(test)]
impl Card {
    /// An idle card of 8 GiB.
    pub(crate) fn example(index: u32) -> Card {
        Card {
            index,
            uuid: Some(format!("GPU-00000000-0000-0000-0000-00000000000{index}")),
            name: "NVIDIA Example".to_owned(),
            total_bytes: Some(8192 * MIB),
            used_bytes: Some(0),
            free_bytes: Some(8192 * MIB),
            utilisation_percent: Some(0),
            divided: false,
            processes: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_cards() {
        let text = "1, GPU-b, NVIDIA H200, 143771, 4, 143166, 3, Disabled\n\
                    0, GPU-a, Odd, Name, 8192 MiB, [N/A], [Insufficient Permissions], [N/A], Enabled\n\
                    Unable to determine the device handle for GPU0000:01:00.0: Unknown Error\n\
                    2, [Unknown Error], NVIDIA T4, , , , , [N/A]\n";
        let found = cards(text, 8).unwrap();
        assert_eq!(found.iter().map(|card| card.index).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!((found[0].name.as_str(), found[0].divided), ("Odd, Name", true));
        assert_eq!((found[0].total_bytes, found[0].used_bytes), (Some(8 << 30), None));
        assert_eq!((found[1].free_bytes, found[1].utilisation_percent), (Some(143166 * MIB), Some(3)));
        assert_eq!((found[2].uuid.as_deref(), found[2].free_bytes), (None, None));
        let old = cards("0, GPU-a, Tesla K80, 11441, 0, 11441, 0\n", 7).unwrap();
        assert!(!old[0].divided && old[0].total_bytes == Some(11441 * MIB));
    }

    #[test]
    fn what_is_no_list_of_cards_is_a_reason() {
        let reason = |text: &str| Unseen::because(cards(text, 8).unwrap_err());
        assert_eq!(reason("\n \n").reason, "nvidia-smi shows no card");
        assert!(!reason("").may_exist);
        let garbage = reason("\u{0}\u{1} not csv\n[N/A], [N/A]\n");
        assert_eq!(garbage.reason, "nvidia-smi says what cannot be read: ?? not csv");
        assert!(garbage.may_exist);
        for (line, device, expected) in [
            ("nvidia-smi was not found in PATH", false, false),
            ("nvidia-smi was not found in PATH", true, true),
            ("nvidia-smi fails: No devices were found", true, false),
            ("nvidia-smi fails: it couldn't communicate with the NVIDIA driver", true, false),
            ("nvidia-smi does not answer within 10 s", false, true),
        ] {
            assert_eq!(may_exist(line, device), expected, "{line}");
        }
    }

    #[test]
    fn processes_join_their_cards() {
        let mut cards = vec![Card::example(0), Card::example(1)];
        let (first, second) = (cards[0].uuid.clone().unwrap(), cards[1].uuid.clone().unwrap());
        let own = std::process::id();
        let text = format!(
            "{second}, 512, 4000001, /opt/x y/python3, -m z\n{second}, [N/A], 4000002, [Not Found]\n\
             {first}, 9, {own}, us\nGPU-other, 1, 4000003, x\nNo running processes found\n"
        );
        add_processes(&mut cards, &text);
        assert_eq!(cards[0].processes, []);
        let seen: Vec<(u32, &str, Option<u64>)> =
            cards[1].processes.iter().map(|one| (one.pid, one.name.as_str(), one.used_bytes)).collect();
        assert_eq!(seen, [(4000001, "python3, -m z", Some(512 * MIB)), (4000002, "", None)]);
    }

    proptest::proptest! {
        #[test]
        fn never_panics(text in "[0-9a-zA-Z,\\[\\]/ \n-]{0,80}") {
            for fields in [7, 8] {
                if let Ok(mut cards) = cards(&text, fields) {
                    add_processes(&mut cards, &text);
                }
            }
        }
    }
}
