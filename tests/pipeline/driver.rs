//! A process that probes, to be watched and signalled by the tests.
//!
//! It is this test binary once more, told to run the one test [`driver`] with a [`Spec`] in its environment.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use scfoundry::error::{Error, Kind};
use scfoundry::history::Entry;
use scfoundry::method::{Catalogue, Task};
use scfoundry::plan::{Context, Request, Role, Typed};
use scfoundry::probe;
use scfoundry::settings::{Flags, Settings};
use scfoundry::ui::Ui;
use scfoundry::workspace::Workspace;
use serde::{Deserialize, Serialize};

use crate::place::{Place, demo, surround};

const SPEC: &str = "SCFOUNDRY_TEST_DRIVER";
const SAID: &str = "said.json";

/// What a driver is to probe, in the workspace that it is started in.
#[derive(Serialize, Deserialize)]
pub struct Spec {
    pub task: Task,
    pub method: Option<String>,
    pub inputs: Vec<(Role, PathBuf)>,
    /// A configuration that names the program: the driver is not the one that tasks are to run.
    pub config: PathBuf,
    pub cells: usize,
}

/// What came of it.
#[derive(Serialize, Deserialize)]
pub enum Said {
    Measured(Vec<Entry>),
    Failed { code: u8, error: String, hints: Vec<String> },
}

#[test]
#[ignore = "started by the other tests; by itself it proves that all cells are no sample"]
fn driver() {
    let Ok(text) = std::env::var(SPEC) else {
        let folder = tempfile::tempdir().unwrap();
        let spec = Spec {
            task: Task::Embed,
            method: Some("pca".to_owned()),
            inputs: vec![(Role::Data, demo())],
            config: demo(),
            cells: 700,
        };
        assert_eq!(spec.measure(folder.path()).unwrap_err().kind, Kind::Usage);
        return;
    };
    let here = std::env::current_dir().unwrap();
    let said = match serde_json::from_str::<Spec>(&text).unwrap().measure(&here) {
        Ok(entries) => Said::Measured(entries),
        Err(error) => {
            Said::Failed { code: error.kind.exit_code(), error: error.to_string(), hints: error.hints }
        }
    };
    std::fs::write(here.join(SAID), serde_json::to_vec(&said).unwrap()).unwrap();
}

impl Spec {
    fn measure(self, here: &Path) -> Result<Vec<Entry>, Error> {
        let workspace = Workspace::at(here)?;
        let request = Request {
            task: self.task,
            method: self.method,
            inputs: self.inputs,
            given: Vec::new(),
            strict: false,
            run_name: None,
            resume: None,
            configs: vec![self.config],
            profile: None,
            nextflow_args: Vec::new(),
            typed: Typed::default(),
        };
        let context = Context {
            workspace: &workspace,
            settings: &Settings::gather(&Flags::default(), &workspace)?,
            catalogue: &Catalogue::load(None)?,
            stamp: "20261203-060000",
            variable: &|name| std::env::var(name).ok(),
        };
        probe::measure(&request, &context, self.cells, &Ui::default())
    }

    pub fn start(&self, place: &Place) -> Child {
        let mut command = Command::new(std::env::current_exe().unwrap());
        surround(&mut command, place.root());
        command.args(["--ignored", "--exact", "driver::driver", "--nocapture"]);
        command.env(SPEC, serde_json::to_string(self).unwrap());
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }
}

/// Waits for the driver; gives what it has said in the end, and on stderr.
pub fn end(driver: Child, place: &Place) -> (Said, String) {
    let output = driver.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    let said = std::fs::read(place.join(SAID)).unwrap_or_else(|_| panic!("{stderr}"));
    std::fs::remove_file(place.join(SAID)).unwrap();
    (serde_json::from_slice(&said).unwrap(), stderr)
}
