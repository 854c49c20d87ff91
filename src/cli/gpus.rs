use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::gpu::{self, Card, Held, Leases, Standing, Visible};
use crate::settings;
use crate::table::{Column, Table, terminal_width};
use crate::trace::units::format_bytes;
use crate::ui::Ui;

/// List the GPUs of this machine and who has them
///
/// A card is `free`, `held` by a run of scfoundry, `in use` by other programs (a process that computes on it, or more than
/// 1 GiB of its memory taken), `divided` into parts (MIG), or `hidden` by CUDA_VISIBLE_DEVICES. `--gpu auto` takes a free one.
///
/// Reservations are seen by all users of the machine: they are locks in /tmp/scfoundry-gpus, or in $SCFOUNDRY_LEASE_DIR where
/// a site sets it for all, and end with the run however it ends. Exit code 4 if no card is to be seen.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  scfoundry gpus
  scfoundry gpus --json | jq -r '.gpus[] | select(.standing == \"free\") | .index'
  watch -n 5 scfoundry gpus")]
pub struct Args {}

pub fn run(_: Args, ui: &Ui) -> Result<()> {
    let seen = gpu::survey();
    let visible = Visible::new(settings::visible_devices());
    let leases = Leases::existing(settings::lease_folder_from_environment(), settings::own_lease_folder());
    let standing = |card: &Card| Standing::of(card, leases.holder(&gpu::key(card)), &visible);
    if ui.json {
        let cards = seen.as_deref().unwrap_or_default();
        let gpus: Vec<Value> = cards.iter().map(|card| entry(card, &standing(card), &visible)).collect();
        let problem = seen.as_ref().err().map(|unseen| &unseen.reason);
        ui.document(&json!({ "schema": 1, "gpus": gpus, "problem": problem }))?;
    }
    let cards = seen.map_err(|unseen| {
        Error::environment("no NVIDIA GPU is to be seen here")
            .cause(unseen.reason)
            .hint("`nvidia-smi` must show the cards; methods that need none run without")
    })?;
    if ui.json {
        return Ok(());
    }
    let mut table = Table::new([
        Column::number("gpu"),
        Column::text("name").trimmed(),
        Column::number("used"),
        Column::number("memory"),
        Column::number("%gpu"),
        Column::text("is"),
        Column::text("by"),
    ]);
    for card in &cards {
        let standing = standing(card);
        table.row([
            card.index.to_string(),
            card.name.clone(),
            card.used_bytes.map(format_bytes).unwrap_or_default(),
            card.total_bytes.map(format_bytes).unwrap_or_default(),
            card.utilisation_percent.map(|percent| format!("{percent}%")).unwrap_or_default(),
            standing.name().to_owned(),
            standing.reason(card, &visible).unwrap_or_default(),
        ]);
    }
    ui.line(table.render(terminal_width()))
}

fn entry(card: &Card, standing: &Standing, visible: &Visible) -> Value {
    let mut entry = json!(card);
    entry["standing"] = json!(standing.name());
    entry["reason"] = json!(standing.reason(card, visible));
    entry["holder"] = match standing {
        Standing::Held(Held(holder)) => json!(holder),
        _ => Value::Null,
    };
    entry
}
