//! On a real Podman, as root: a method in its image, and what goes wrong there in words of its own.

use crate::methods::Method;
use crate::place::{Done, Place, demo, trace};

fn workspace() -> (Place, String) {
    let image = std::env::var("SCFOUNDRY_TEST_PODMAN_IMAGE")
        .expect("set SCFOUNDRY_TEST_PODMAN_IMAGE: tests/backends/podman.sh up prints it");
    let place = Place::new();
    place.run(&["init", ".", "--runtime", "podman"]).expect(0);
    (place, image)
}

fn embed(place: &Place, method: &Method<'_>, more: &[&str]) -> Done {
    method.add_to(place);
    let data = demo();
    place.run(&[&["embed", "--method", method.name, "--data", data.to_str().unwrap()], more].concat())
}

#[test]
#[ignore = "backend: a method in a Podman container"]
fn backend_podman_method_runs_in_its_image() {
    let (place, image) = workspace();
    let does = r#"
space = os.statvfs("/dev/shm")
assert space.f_blocks * space.f_frsize >> 30 == 16, space
assert not os.path.exists("/etc/debian_version"), "not in the image"
assert os.path.isdir(spec["weights"]) and not os.access(spec["weights"], os.W_OK)
assert os.access(spec["cache"], os.W_OK)
"#;
    embed(&place, &Method { image: &image, does, ..Method::default() }, &[]).expect(0);
    let result = place.join("results/embeddings/mine/pbmc_700.h5ad");
    assert_eq!(std::fs::read(&result).unwrap(), std::fs::read(demo()).unwrap());
    assert_eq!(trace(&place.newest().join("trace.txt"))[0]["container"], image);
}

#[test]
#[ignore = "backend: what goes wrong in a Podman container"]
fn backend_podman_failures_are_explained() {
    let (place, image) = workspace();
    let says = |method: Method<'_>, more: &[&str], parts: &[&str]| {
        let done = embed(&place, &method, more);
        done.expect(1);
        for part in parts {
            assert!(done.error().contains(part), "{part}: {}", done.stderr);
        }
    };
    let gpu = Method { name: "gpu", image: &image, gpu: true, ..Method::default() };
    says(gpu, &["--gpu", "0"], &["podman cannot give a task a GPU", "nvidia-ctk cdi generate", "--gpu none"]);
    says(
        Method { name: "absent", image: "localhost/absent:1", ..Method::default() },
        &[],
        &["localhost/absent:1", "cannot be had"],
    );
    says(
        Method { name: "short", image: "some/absent:1", ..Method::default() },
        &[],
        &["some/absent:1", "podman.registry"],
    );
    place.write("small.config", "process.memory = '64 MB'\n");
    let does = "block = bytearray(300 << 20)\nfor at in range(0, len(block), 4096):\n    block[at] = 1";
    let hungry = Method { name: "hungry", image: &image, does, ..Method::default() };
    says(hungry, &["--config", "small.config"], &["killed for memory", "64.0 MiB asked for"]);
}
