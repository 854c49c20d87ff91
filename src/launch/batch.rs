//! The batch size of a run that left it open, once its card is known.

use std::fs;
use std::path::Path;

use serde_json::{Map, Value};

use crate::estimate::{self, Fit, Room};
use crate::gpu::{self, Card};
use crate::history;
use crate::method::Task;
use crate::plan::{Batch, BatchSource, DECIDED, Plan};
use crate::settings::Settings;
use crate::ui::Ui;

/// The plan with its batch size: that of the run it goes on from, else the largest that runs like it say will fit the cards,
/// else as it was, to be found by trial. A plan whose batch size was not left open stays as it is.
pub fn settle(plan: Plan, settings: &Settings, ui: &Ui) -> Plan {
    let Some(open) = plan.batch.clone().filter(|batch| batch.source == BatchSource::Trial) else {
        return plan;
    };
    if let Some(run) = &plan.resume {
        let size = earlier(run, &open.parameter);
        return match size {
            Some(_) => plan.with_batch(Batch { size, source: BatchSource::Resumed, ..open }),
            None => plan,
        };
    }
    match from_history(&plan, settings, ui) {
        Some(Fit { size, runs, halved }) => {
            let size = Some(size);
            plan.with_batch(Batch { size, source: BatchSource::History, runs, halved, ..open })
        }
        None => plan,
    }
}

/// What the run at this path had decided.
fn earlier(run: &Path, parameter: &str) -> Option<u64> {
    let written = fs::read(run.join("params.json")).ok()?;
    let parameters: Map<String, Value> = serde_json::from_slice(&written).ok()?;
    parameters.get(DECIDED)?.get(parameter)?.as_u64()
}

/// The size that fits each of the plan's cards.
fn from_history(plan: &Plan, settings: &Settings, ui: &Ui) -> Option<Fit> {
    let directory = &settings.history.as_ref()?.value;
    if plan.task == Task::Finetune || !plan.uses_cards_here() {
        return None;
    }
    let cards = gpu::survey().ok()?;
    let rooms: Option<Vec<Room>> = plan.gpus.0.iter().map(|index| room(&cards, *index)).collect();
    let entries = history::read(directory)
        .inspect_err(|error| ui.warn(format_args!("the batch size is not taken from earlier runs: {error}")))
        .ok()?
        .entries;
    let fits: Option<Vec<Fit>> =
        rooms?.into_iter().map(|room| estimate::batch(plan, &entries, room)).collect();
    let smallest = fits?.into_iter().min_by_key(|fit| fit.size)?;
    let cells = plan.inputs.iter().map(|input| input.cells as u64).max()?.max(1);
    Some(Fit {
        size: smallest.size.min(cells),
        halved: smallest.halved && smallest.size <= cells,
        ..smallest
    })
}

fn room(cards: &[Card], index: u32) -> Option<Room> {
    let card = cards.iter().find(|card| card.index == index)?;
    Some(Room { total: card.total_bytes?, free: card.free_bytes? })
}
