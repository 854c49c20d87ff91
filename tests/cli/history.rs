//! The history that several people share.

use std::process::Stdio;

use scfoundry::history;

use crate::works::Works;
use crate::world::Ended;

#[test]
fn many_programs_write_to_one_history_at_once() {
    const WRITERS: usize = 6;
    let shared = tempfile::tempdir().unwrap();
    let directory = shared.path().join("made/by/the/first");
    let places: Vec<Works> = (0..WRITERS).map(|_| Works::new()).collect();
    let start = |place: &Works| {
        let mut command = place.command("one", &[]);
        command.env("SCFOUNDRY_HISTORY", &directory).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let mut children: Vec<_> = places.iter().map(start).collect();
    // A reader in between sees whole entries only.
    while children.iter_mut().any(|child| child.try_wait().unwrap().is_none()) {
        let found = history::read(&directory).unwrap();
        assert!(found.unreadable.is_empty(), "{found:?}");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    for child in children {
        let ended = Ended::from(child.wait_with_output().unwrap()).succeeded();
        assert!(!ended.stderr.contains("warning"), "{ended:?}");
    }
    let found = history::read(&directory).unwrap();
    assert_eq!((found.entries.len(), found.unreadable.len()), (WRITERS, 0));
    for entry in &found.entries {
        assert_eq!((entry.inputs[0].cells, entry.steps.len(), entry.steps[0].seconds), (80, 1, Some(1.0)));
    }
    assert_eq!(std::fs::read_dir(&directory).unwrap().count(), WRITERS, "something was left");
}
