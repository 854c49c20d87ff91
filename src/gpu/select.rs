//! Which card a run may have.

use std::cmp::Reverse;

use super::choice::Name;
use super::lease::Held;
use super::smi::Card;
use super::visible::Visible;
use crate::error::{Error, Result};
use crate::trace::units::format_bytes;

/// A card on which more memory than this is used is not idle, even if no process is seen: it may be one of a container.
/// Less is what a desktop takes.
pub const IDLE_BYTES: u64 = 1 << 30;

/// How a card stands to a run that wants a free one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    Free,
    /// A run of scfoundry has it.
    Held(Held),
    /// Others compute on it.
    Used,
    /// Only its parts can be had (MIG).
    Divided,
    /// `CUDA_VISIBLE_DEVICES` leaves it out.
    Hidden,
}

impl Standing {
    pub fn of(card: &Card, held: Option<Held>, visible: &Visible) -> Standing {
        match held {
            Some(held) => Standing::Held(held),
            None if !visible.includes(card) => Standing::Hidden,
            None if card.divided => Standing::Divided,
            None if foreign_use(card).is_some() => Standing::Used,
            None => Standing::Free,
        }
    }

    pub fn name(&self) -> &'static str {
        match self {
            Standing::Free => "free",
            Standing::Held(_) => "held",
            Standing::Used => "in use",
            Standing::Divided => "divided",
            Standing::Hidden => "hidden",
        }
    }

    /// Who has it or why it cannot be had; nothing of a free card.
    pub fn reason(&self, card: &Card, visible: &Visible) -> Option<String> {
        match self {
            Standing::Free => None,
            Standing::Held(held) => Some(held.to_string()),
            Standing::Used => foreign_use(card),
            Standing::Divided => Some("divided into parts (MIG)".to_owned()),
            Standing::Hidden => Some(format!("not in CUDA_VISIBLE_DEVICES={}", visible.text())),
        }
    }
}

/// Who computes on a card, or how much of its memory is used by whom nobody sees; `None`: it is idle.
pub fn foreign_use(card: &Card) -> Option<String> {
    let used = card.used_bytes.filter(|bytes| *bytes > IDLE_BYTES);
    if card.processes.is_empty() {
        return used.map(|bytes| format!("{} of its memory, by whom is not to be seen", format_bytes(bytes)));
    }
    let each: Vec<String> = card
        .processes
        .iter()
        .map(|process| {
            let facts: Vec<String> =
                process.user.iter().cloned().chain(process.used_bytes.map(format_bytes)).collect();
            let facts = if facts.is_empty() { String::new() } else { format!(" ({})", facts.join(", ")) };
            format!("{} {}", format_args!("pid {}", process.pid), process.name).trim_end().to_owned() + &facts
        })
        .collect();
    Some(each.join(", "))
}

/// The cards that a run may take, as far as `nvidia-smi` tells: the one with most free memory first.
pub fn candidates<'a>(cards: &'a [Card], visible: &Visible) -> Vec<&'a Card> {
    let mut found: Vec<&Card> =
        cards.iter().filter(|card| Standing::of(card, None, visible) == Standing::Free).collect();
    found.sort_by_key(|card| (Reverse(card.free_bytes), card.index));
    found
}

/// The cards of these names, in their order.
///
/// # Errors
/// Environment: there is no such card; Usage: two names are one card's, or one could mean several.
pub fn named<'a>(names: &[Name], cards: &'a [Card]) -> Result<Vec<&'a Card>> {
    let mut found: Vec<&Card> = Vec::new();
    for name in names {
        let is_meant = |card: &&Card| match name {
            Name::Index(number) => card.index == *number,
            Name::Uuid(start) => card.uuid.as_deref().is_some_and(|uuid| uuid.starts_with(start)),
        };
        let card = match cards.iter().filter(is_meant).collect::<Vec<_>>().as_slice() {
            [card] => *card,
            [] => {
                let here: Vec<String> = cards.iter().map(|card| card.index.to_string()).collect();
                return Err(Error::environment(format_args!("there is no GPU {name} here"))
                    .cause(format_args!("nvidia-smi shows {}", here.join(", ")))
                    .hint("`scfoundry gpus` lists the cards"));
            }
            _ => {
                return Err(Error::usage(format_args!("{name} could be one of several cards"))
                    .hint("write more of its UUID; `scfoundry gpus --json` shows it whole"));
            }
        };
        if found.contains(&card) {
            return Err(Error::usage(format_args!("GPU {} is named twice", card.index)));
        }
        found.push(card);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::smi::Process;

    fn process(pid: u32) -> Process {
        Process { pid, name: "python3".into(), user: Some("bob".into()), used_bytes: Some(3 << 30) }
    }

    #[test]
    fn the_free_card_with_most_memory_comes_first() {
        let mut cards: Vec<Card> = (0..6).map(Card::example).collect();
        cards[0].processes.push(process(77));
        cards[1].used_bytes = Some(IDLE_BYTES + 1);
        cards[2].free_bytes = None;
        cards[3].used_bytes = Some(IDLE_BYTES);
        cards[3].free_bytes = cards[3].free_bytes.map(|free| free - IDLE_BYTES);
        cards[5].divided = true;
        let order = |visible: &Visible| -> Vec<u32> {
            candidates(&cards, visible).iter().map(|card| card.index).collect()
        };
        assert_eq!(order(&Visible::default()), [4, 3, 2]);
        assert_eq!(order(&Visible::new(Some("3,0".into()))), [3]);
    }

    #[test]
    fn standings_and_their_reasons() {
        let mut card = Card::example(1);
        let (all, other) = (Visible::default(), Visible::new(Some("0".into())));
        let of = |card: &Card, visible: &Visible| {
            let standing = Standing::of(card, None, visible);
            (standing.name(), standing.reason(card, visible))
        };
        assert_eq!(of(&card, &all), ("free", None));
        assert_eq!(of(&card, &other), ("hidden", Some("not in CUDA_VISIBLE_DEVICES=0".to_owned())));
        card.used_bytes = Some(2 << 30);
        let unseen = "2.0 GiB of its memory, by whom is not to be seen";
        assert_eq!(of(&card, &all), ("in use", Some(unseen.to_owned())));
        card.processes =
            vec![process(7), Process { name: String::new(), user: None, used_bytes: None, pid: 8 }];
        assert_eq!(of(&card, &all), ("in use", Some("pid 7 python3 (bob, 3.0 GiB), pid 8".to_owned())));
    }

    #[test]
    fn names_lead_to_one_card_each() {
        let cards: Vec<Card> = (0..3).map(Card::example).collect();
        let found = |names: &[Name]| -> Result<Vec<u32>> {
            Ok(named(names, &cards)?.iter().map(|card| card.index).collect())
        };
        let uuid = |index: usize| Name::Uuid(cards[index].uuid.clone().unwrap());
        assert_eq!(found(&[Name::Index(2), uuid(0)]).unwrap(), [2, 0]);
        assert_eq!(found(&[Name::Index(7)]).unwrap_err().message, "there is no GPU 7 here");
        assert_eq!(found(&[Name::Index(0), uuid(0)]).unwrap_err().message, "GPU 0 is named twice");
        let short = Name::Uuid("GPU-0".into());
        assert_eq!(found(&[short]).unwrap_err().message, "GPU-0 could be one of several cards");
    }
}
