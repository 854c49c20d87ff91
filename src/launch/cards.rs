//! The cards of a run: taken before it starts, waited for while others have them, given back when it has ended.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::error::{Error, Kind, Result};
use crate::gpu::{self, Card, Choice, Holder, Lease, Leases, Name, Standing, Unseen, Visible};
use crate::nextflow::StopRequests;
use crate::plan::Plan;
use crate::rundir;
use crate::settings;
use crate::trace::units::format_bytes;
use crate::ui::Ui;

/// How often it is looked whether a card has been given back.
const POLL: Duration = Duration::from_millis(300);
/// How often it is looked whether others have left a card.
const WATCH: Duration = Duration::from_secs(5);
/// Cards that a message tells of.
const TOLD: usize = 4;

/// The cards that a run has, until this is dropped.
#[derive(Debug, Default)]
pub struct Cards {
    pub taken: Vec<rundir::Card>,
    leases: Vec<Lease>,
}

impl Cards {
    pub fn numbers(&self) -> Vec<u32> {
        self.taken.iter().map(|card| card.index).collect()
    }

    /// Says in whose name they are held.
    pub fn belong_to(&mut self, run: &Path) {
        for lease in &mut self.leases {
            lease.belongs_to(run);
        }
    }
}

/// What a run is after.
enum Target {
    /// A free card.
    Any,
    These(Vec<Card>),
    /// There is none for it, for this reason.
    Nothing(String),
}

/// Takes the cards of a plan, and waits for them. `None`: it needs none, or a scheduler gives them.
///
/// # Errors
/// Environment: there is no such card; of kind `Signal` when the waiting was stopped.
pub fn take(plan: &Plan, ui: &Ui) -> Result<Option<Cards>> {
    if !plan.uses_cards_here() || plan.is_rehearsal() {
        return Ok(None);
    }
    let cards = match gpu::survey() {
        Ok(cards) => cards,
        Err(unseen) => return unseen_cards(plan, &unseen, ui).map(Some),
    };
    let visible = Visible::new(settings::visible_devices());
    let holder = Holder::this(&plan.run_stem);
    let taken = match target(plan, &cards, &visible, ui)? {
        Target::Nothing(reason) => no_card(plan, &reason, ui)?,
        Target::Any => any(cards, &visible, &leases(ui)?, &holder, ui)?,
        Target::These(cards) => these(cards, &leases(ui)?, &holder, ui)?,
    };
    Ok(Some(taken))
}

/// The plan with the cards that it would get now, for `--dry-run`. Nothing is taken.
///
/// # Errors
/// As those of [`take`].
pub fn foresee(plan: &Plan, ui: &Ui) -> Result<Plan> {
    if !plan.uses_cards_here() || plan.gpu_wish.choice.is_by_number() {
        return Ok(plan.clone());
    }
    let visible = Visible::new(settings::visible_devices());
    let found = match gpu::survey() {
        Err(unseen) => Err(unseen.reason),
        Ok(cards) => match target(plan, &cards, &visible, ui)? {
            Target::Nothing(reason) => Err(reason),
            Target::These(cards) => Ok(cards.iter().map(|card| card.index).collect()),
            Target::Any => Ok(vec![next_free(&cards, &visible, ui)]),
        },
    };
    match found {
        Ok(numbers) => Ok(plan.on_cards(numbers)),
        Err(reason) if plan.needs_gpu_in_container() => {
            ui.warn(format_args!("no GPU is to be had here, so it would be refused: {reason}"));
            Ok(plan.clone())
        }
        Err(reason) => no_card(plan, &reason, ui).map(|none| plan.on_cards(none.numbers())),
    }
}

fn next_free(cards: &[Card], visible: &Visible, ui: &Ui) -> u32 {
    let leases = Leases::existing(settings::lease_folder_from_environment(), settings::own_lease_folder());
    let free =
        gpu::candidates(cards, visible).into_iter().find(|card| leases.holder(&gpu::key(card)).is_none());
    free.or(usable(cards, visible).next()).map_or(0, |card| {
        if free.is_none() {
            ui.warn(format_args!(
                "no GPU is free now, so it would wait: {}",
                why_busy(cards, visible, &leases)
            ));
        }
        card.index
    })
}

/// What the wish means among these cards. `CUDA_VISIBLE_DEVICES` stands between what is typed and what the workspace says.
fn target(plan: &Plan, cards: &[Card], visible: &Visible, ui: &Ui) -> Result<Target> {
    let wish = &plan.gpu_wish;
    let any = || match usable(cards, visible).next() {
        Some(_) => Target::Any,
        None if cards.iter().any(|card| visible.includes(card)) => {
            Target::Nothing("all cards are divided into parts (MIG), of which none can be taken".to_owned())
        }
        None => Target::Nothing(format!("CUDA_VISIBLE_DEVICES={} leaves no card", visible.text())),
    };
    let Choice::Named(names) = &wish.choice else { return Ok(any()) };
    let found: Vec<Card> = gpu::named(names, cards)?.into_iter().cloned().collect();
    let Some(hidden) = found.iter().find(|card| !visible.includes(card)) else {
        return Ok(Target::These(found));
    };
    let conflict = format!("CUDA_VISIBLE_DEVICES={} leaves out GPU {}", visible.text(), hidden.index);
    if wish.typed {
        return Err(Error::environment(conflict)
            .cause(format_args!("{} is {}", wish.named, wish.choice))
            .hint("`--gpu auto` takes a free one of those it leaves; `scfoundry gpus` shows them"));
    }
    ui.warn(format_args!("{conflict}, which {} says: a free one of those it leaves is taken", wish.named));
    Ok(any())
}

/// The cards that a run could ever take by itself.
fn usable<'a>(cards: &'a [Card], visible: &'a Visible) -> impl Iterator<Item = &'a Card> {
    cards.iter().filter(|card| visible.includes(card) && !card.divided)
}

/// A container that is promised a card fails without; what runs by itself is only slow.
fn no_card(plan: &Plan, reason: &str, ui: &Ui) -> Result<Cards> {
    let method = plan.method.as_deref().unwrap_or("the method");
    if plan.needs_gpu_in_container() {
        return Err(Error::environment(format_args!("there is no GPU for {method}")).cause(reason).hint(
            "`--gpu none` runs it without one, which may be very slow; `scfoundry gpus` tells what is here",
        ));
    }
    ui.warn(format_args!("there is no GPU for {method}, which may be very slow without: {reason}"));
    Ok(Cards::default())
}

/// Where no card is to be seen, numbers are used as they were named.
fn unseen_cards(plan: &Plan, unseen: &Unseen, ui: &Ui) -> Result<Cards> {
    let Choice::Named(names) = &plan.gpu_wish.choice else { return no_card(plan, &unseen.reason, ui) };
    let mut taken = Vec::new();
    for name in names {
        match name {
            Name::Index(index) => taken.push(rundir::Card { index: *index, uuid: None, name: None }),
            Name::Uuid(uuid) => {
                return Err(Error::environment(format_args!("GPU {uuid} cannot be found"))
                    .cause(&unseen.reason)
                    .hint("name it by its number; `scfoundry gpus` tells what is here"));
            }
        }
    }
    ui.note(format_args!(
        "GPU {} is passed on as it is, since no card is to be seen: {}",
        plan.gpu_wish.choice, unseen.reason
    ));
    if !unseen.may_exist {
        return Ok(Cards { taken, leases: Vec::new() });
    }
    let keys = taken.iter().map(|card| (card.index, gpu::key_of_number(card.index))).collect();
    let (held, _) = all_or_none(keys, &leases(ui)?, &Holder::this(&plan.run_stem), ui)?;
    Ok(Cards { taken, leases: held })
}

fn leases(ui: &Ui) -> Result<Leases> {
    let (leases, refusal) =
        Leases::open(settings::lease_folder_from_environment(), settings::own_lease_folder())?;
    if let Some(refusal) = refusal {
        ui.warn(format_args!(
            "GPUs are shared among your own runs only, since others cannot see them: {refusal}"
        ));
    }
    Ok(leases)
}

/// Takes a free card.
fn any(cards: Vec<Card>, visible: &Visible, leases: &Leases, holder: &Holder, ui: &Ui) -> Result<Cards> {
    let mut seen = Seen { cards, at: Instant::now(), unheld: None };
    let (taken, _) = wait(ui, || {
        seen.refresh(leases);
        for card in gpu::candidates(&seen.cards, visible) {
            if let Some(lease) = leases.take(&gpu::key(card), holder)? {
                return Ok(Ok((card.clone(), lease)));
            }
        }
        Ok(Err(format!("waiting for a free GPU: {}", why_busy(&seen.cards, visible, leases))))
    })?;
    let (card, lease) = taken;
    let free = card.free_bytes.map_or(String::new(), |bytes| format!(", {} free", format_bytes(bytes)));
    ui.note(format_args!("GPU {}: {}{free}", card.index, card.name));
    Ok(Cards { taken: vec![recorded(&card)], leases: vec![lease] })
}

/// Takes these cards, which the user named: others who compute on one are told, not waited for.
fn these(mut cards: Vec<Card>, leases: &Leases, holder: &Holder, ui: &Ui) -> Result<Cards> {
    let keys = cards.iter().map(|card| (card.index, gpu::key(card))).collect();
    let (held, waited) = all_or_none(keys, leases, holder, ui)?;
    if let Some(now) = waited.then(gpu::survey).and_then(std::result::Result::ok) {
        for card in &mut cards {
            if let Some(same) = now.iter().find(|other| gpu::key(other) == gpu::key(card)) {
                card.clone_from(same);
            }
        }
    }
    for card in &cards {
        if let Some(others) = gpu::foreign_use(card) {
            ui.warn(format_args!(
                "GPU {} is in use by others too, as it was named it is taken: {others}",
                card.index
            ));
        }
    }
    Ok(Cards { taken: cards.iter().map(recorded).collect(), leases: held })
}

/// Takes all of the cards, given by number and lease, or none, in the same order in every run: so none waits for another that
/// waits for it. Tells whether it had to wait.
fn all_or_none(
    mut cards: Vec<(u32, String)>,
    leases: &Leases,
    holder: &Holder,
    ui: &Ui,
) -> Result<(Vec<Lease>, bool)> {
    cards.sort();
    wait(ui, || {
        let mut taken = Vec::new();
        for (index, key) in &cards {
            match leases.take(key, holder)? {
                Some(lease) => taken.push(lease),
                None => {
                    let held = leases.holder(key).unwrap_or(gpu::Held(None));
                    return Ok(Err(format!("waiting for GPU {index}, which is held by {held}")));
                }
            }
        }
        Ok(Ok(taken))
    })
}

/// What was last seen of the cards.
struct Seen {
    cards: Vec<Card>,
    at: Instant,
    /// The leases that nobody had then.
    unheld: Option<Vec<String>>,
}

impl Seen {
    /// Asks anew where a card has been given back, and else only now and then: it takes up to a second.
    fn refresh(&mut self, leases: &Leases) {
        let keys = self.cards.iter().map(gpu::key);
        let unheld: Vec<String> = keys.filter(|key| leases.holder(key).is_none()).collect();
        let changed = self.unheld.as_ref().is_some_and(|before| *before != unheld);
        if changed || (!unheld.is_empty() && self.at.elapsed() > WATCH) {
            // Without an answer what was known stays.
            if let Ok(cards) = gpu::survey() {
                self.cards = cards;
            }
            self.at = Instant::now();
        }
        self.unheld = Some(unheld);
    }
}

/// Tries until it succeeds; says once, in its own words, what is waited for. Tells whether it had to wait.
fn wait<T>(
    ui: &Ui,
    mut attempt: impl FnMut() -> Result<std::result::Result<T, String>>,
) -> Result<(T, bool)> {
    let mut requests: Option<StopRequests> = None;
    loop {
        let reason = match attempt()? {
            Ok(taken) => return Ok((taken, requests.is_some())),
            Err(reason) => reason,
        };
        let requests = match &mut requests {
            Some(requests) => requests,
            none => {
                let watched = none.insert(StopRequests::watch()?);
                ui.note(reason);
                watched
            }
        };
        if let Some(signal) = requests.within(POLL) {
            return Err(Error::new(
                Kind::of_signal(signal),
                "stopped while waiting for a GPU; nothing was run",
            ));
        }
    }
}

fn why_busy(cards: &[Card], visible: &Visible, leases: &Leases) -> String {
    let mut reasons: Vec<String> = usable(cards, visible)
        .map(|card| {
            let standing = Standing::of(card, leases.holder(&gpu::key(card)), visible);
            let reason = standing.reason(card, visible).unwrap_or_else(|| "another scfoundry".to_owned());
            let verb = if standing == Standing::Used { "in use by" } else { "held by" };
            format!("{} is {verb} {reason}", card.index)
        })
        .collect();
    let more = reasons.len().saturating_sub(TOLD);
    reasons.truncate(TOLD);
    reasons.extend((more > 0).then(|| format!("and {more} more")));
    reasons.join("; ")
}

fn recorded(card: &Card) -> rundir::Card {
    rundir::Card { index: card.index, uuid: card.uuid.clone(), name: Some(card.name.clone()) }
}
