//! A task that does nothing but look around, in the surroundings that a model's task gets.

use serde_json::Value;

use super::asks::Asker;
use super::containers::{self, Cards, Place, surroundings};
use super::preamble::Preamble;
use super::resources::{self, Gpus, Runtime};
use super::{Context, Stage, Work, staging};
use crate::error::{Error, Result};
use crate::gpu::{self, Choice, Visible, Wish};
use crate::workspace::Config;

/// The one process of `scfoundry doctor --container`.
#[derive(Debug, Clone)]
pub struct Trial {
    pub stage: Stage,
    pub runtime: Runtime,
    /// None: a task without a GPU is tried.
    pub gpus: Gpus,
    pub engine_settings: Vec<(String, Value)>,
    pub profile: Option<String>,
}

impl Trial {
    /// Decides the surroundings as for a model's task. It gets a GPU where the settings name one.
    ///
    /// # Errors
    /// Environment where the configuration turns no container engine on, or for an executor whose command is not here;
    /// Usage for GPUs that are none.
    pub fn make(image: &str, profile: Option<&str>, context: &Context<'_>) -> Result<Trial> {
        let config = Config::read(&context.workspace.nextflow_config(), profile)?;
        let runtime = Trial::runtime(&config)?;
        let executor = resources::executor(&config, (context.variable)("NXF_EXECUTOR"))?;
        let gpus = match &context.settings.gpu {
            Some(_) => cards(&resources::wish(context.settings, &config, || Choice::None)?)?,
            None => Gpus::default(),
        };
        let mounts = staging::mounts(context);
        let place = Place { runtime, config: &config, gpus: &gpus, executor: &executor, mounts };
        let gpu = !gpus.is_empty();
        let process = "DOCTOR";
        let asker = Asker { process, profile: None, gpu, by_input: false, inputs: &[] };
        let stage = Stage {
            process,
            work: Work::Runner("doctor".to_owned()),
            container: Some(image.to_owned()),
            preamble: Preamble::of(place.config, process),
            gpu,
            asks: asker.asks(&place)?,
            max_forks: None,
            cards_per_task: 0,
            surroundings: surroundings(&place, process, if gpu { Cards::All } else { Cards::None }),
        };
        let engine_settings =
            containers::engine_settings(&place, &context.settings.cache_dir.value, |name| {
                (context.variable)(name).is_some()
            });
        Ok(Trial { stage, runtime, engine_settings, profile: profile.map(str::to_owned), gpus })
    }

    /// The engine that the configuration turns on.
    ///
    /// # Errors
    /// Environment: none.
    pub fn runtime(config: &Config) -> Result<Runtime> {
        match Runtime::of(config) {
            Runtime::None => Err(Error::environment("there is no container engine to test")
                .cause("the workspace's nextflow.config turns none on")
                .hint("turn one on there, as in `docker.enabled = true`")),
            runtime => Ok(runtime),
        }
    }
}

/// The cards that are wished for, whoever may be using them: a look takes no time.
fn cards(wish: &Wish) -> Result<Gpus> {
    if wish.choice.is_by_number() {
        return Ok(Gpus(wish.choice.stand_ins()));
    }
    let cards = gpu::survey().map_err(|unseen| {
        Error::environment(format_args!("there is no GPU to test with {} {}", wish.named, wish.choice))
            .cause(unseen.reason)
    })?;
    let found = match &wish.choice {
        Choice::Named(names) => gpu::named(names, &cards)?,
        _ => gpu::candidates(&cards, &Visible::default()).into_iter().chain(&cards).take(1).collect(),
    };
    Ok(Gpus(found.iter().map(|card| card.index).collect()))
}
