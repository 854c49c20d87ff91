//! The part of a plan that is not known before it starts: the cards.

use serde_json::json;

use super::containers::{Mount, Place};
use super::resources::{Gpus, Runtime};
use super::{Plan, stages};
use crate::gpu::Choice;
use crate::workspace::Config;

/// What the surroundings of the tasks are made from, beside the cards.
#[derive(Debug, Clone)]
pub struct Around {
    pub config: Config,
    pub mounts: Vec<Mount>,
}

impl Plan {
    /// The same run on these cards.
    pub fn on_cards(&self, numbers: Vec<u32>) -> Plan {
        let mut plan = Plan { gpus: Gpus(numbers), ..self.clone() };
        let Around { config, mounts } = &self.around;
        let place = Place {
            runtime: plan.runtime,
            config,
            gpus: &plan.gpus,
            executor: &plan.executor,
            mounts: mounts.clone(),
        };
        stages::equip(&mut plan.stages, &place, &plan.inputs);
        plan.parameters.insert("gpu_id".to_owned(), json!(plan.gpus.to_string()));
        plan.batch = plan.open_batch();
        plan
    }

    /// Whether a task of the run computes on cards of this machine.
    pub fn uses_cards_here(&self) -> bool {
        self.executor == "local"
            && self.gpu_wish.choice != Choice::None
            && self.stages.iter().any(|stage| stage.gpu)
    }

    /// Whether a task of the run that uses a GPU does so in a container.
    pub fn needs_gpu_in_container(&self) -> bool {
        self.runtime != Runtime::None
            && self.stages.iter().any(|stage| stage.gpu && stage.container.is_some())
    }
}
