//! The engine that scfoundry keeps for the user: Nextflow's jars, a Java where there is none, an archive of classes.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::java::{self, Java};
use super::store::{JAVA, Store, VERSION};
use super::{Engine, Inspection, Origin, Request, archive, jars, runtime};
use crate::error::Result;
use crate::ui::Ui;

/// Packages of java.base that Nextflow reaches into. Without them a run succeeds, but its task cache stays empty and
/// a resumed run computes everything again.
const OPENED: [&str; 17] = [
    "java.io",
    "java.lang",
    "java.net",
    "java.nio",
    "java.nio.file.spi",
    "java.util",
    "java.util.concurrent.atomic",
    "java.util.concurrent.locks",
    "java.util.regex",
    "jdk.internal.misc",
    "jdk.internal.vm",
    "sun.net.www.protocol.file",
    "sun.net.www.protocol.ftp",
    "sun.net.www.protocol.http",
    "sun.net.www.protocol.https",
    "sun.nio.ch",
    "sun.nio.fs",
];

/// The managed engine, brought if it is not there yet.
///
/// # Errors
/// Of kind `Environment` when something is missing and cannot be brought.
pub(super) fn engine(request: &Request, ui: &Ui) -> Result<Engine> {
    let store = Store::new(request)?;
    let own = java::choose(&java::found(request))?;
    let java = own.clone().or_else(|| runtime::stored(&store.java()));
    let ready = java.filter(|_| jars::present(&store.jars()));
    if let Some(java) = &ready
        && let Some(archive) = archive::stored(&store.jars(), java)
    {
        return Ok(assemble(request, &store, java, archive));
    }
    match (provision(request, &store, own, ui), ready) {
        (Ok((java, archive)), _) => Ok(assemble(request, &store, &java, archive)),
        // A cache that a group shares need not be ours to write; only the archive is missing.
        (Err(error), Some(java)) if !store.is_writable() => {
            ui.detail(format_args!("Nextflow: no fast start, as {error}"));
            Ok(assemble(request, &store, &java, None))
        }
        (Err(error), _) => Err(error),
    }
}

fn provision(
    request: &Request,
    store: &Store,
    own: Option<Java>,
    ui: &Ui,
) -> Result<(Java, Option<PathBuf>)> {
    check_tools(request, store, own.as_ref())?;
    let _lock = store.lock(ui)?;
    jars::provision(request, store, ui)?;
    let java = match own.or_else(|| runtime::stored(&store.java())) {
        Some(java) => java,
        None => runtime::provision(request, store, ui)?,
    };
    let archive = match archive::stored(&store.jars(), &java) {
        Some(archive) => archive,
        None => archive::make(store, &java, &assemble(request, store, &java, None), ui),
    };
    Ok((java, archive))
}

/// Fails before anything is fetched if a tool for a later step is missing.
fn check_tools(request: &Request, store: &Store, own: Option<&Java>) -> Result<()> {
    if !jars::present(&store.jars()) {
        jars::find_tool(request)?;
    }
    if own.is_none() && runtime::stored(&store.java()).is_none() {
        runtime::find_tool(request)?;
    }
    Ok(())
}

/// Says what [`engine`] would use and bring.
pub(super) fn inspect(request: &Request) -> Inspection {
    let java_found = java::found(request);
    let mut inspection = Inspection {
        origin: Origin::Managed,
        path: None,
        version: Some(VERSION.to_owned()),
        java: None,
        java_found,
        missing: Vec::new(),
        problem: None,
    };
    if let Err(problem) = examine(request, &mut inspection) {
        inspection.problem = Some(problem);
    }
    inspection
}

fn examine(request: &Request, inspection: &mut Inspection) -> Result<()> {
    let store = Store::new(request)?;
    inspection.path = Some(store.jars());
    let own = java::choose(&inspection.java_found)?;
    inspection.java = own.clone().or_else(|| runtime::stored(&store.java()));
    if !jars::present(&store.jars()) {
        inspection.missing.push(format!("Nextflow {VERSION}: {}, through mvn", jars::size()));
    }
    if inspection.java.is_none() {
        inspection.missing.push(format!("Java: {}, through pip", JAVA));
    }
    check_tools(request, &store, own.as_ref())
}

fn assemble(request: &Request, store: &Store, java: &Java, archive: Option<PathBuf>) -> Engine {
    let mut prefix: Vec<OsString> = Vec::new();
    if let Some(archive) = archive {
        prefix.extend(archive::use_options(&archive));
    }
    prefix.extend(java_options(request, java));
    prefix.extend(class_options(&store.jars()));
    Engine {
        program: java.path.clone().into(),
        prefix,
        env: environment(request, store),
        origin: Origin::Managed,
        version: Some(VERSION.to_owned()),
        java: Some(java.clone()),
    }
}

/// Options for a process that is short-lived and mostly waits: one compiler tier, the plainest collector.
fn java_options(request: &Request, java: &Java) -> Vec<OsString> {
    // What the user gives Nextflow's launcher in these variables holds here as well.
    let given: Vec<OsString> = ["NXF_OPTS", "NXF_JVM_ARGS"]
        .into_iter()
        .filter_map(|name| request.variable(name)?.to_str())
        .flat_map(|value| value.split_whitespace().map(OsString::from))
        .collect();
    let mut options: Vec<OsString> = vec!["-XX:TieredStopAtLevel=1".into()];
    if !given.iter().any(|option| option.to_string_lossy().ends_with("GC")) {
        options.push("-XX:+UseSerialGC".into());
    }
    if java.major >= 24 {
        // Nextflow's libraries load native code, which later versions announce on stderr.
        options.push("--enable-native-access=ALL-UNNAMED".into());
    }
    options.extend(["-Dfile.encoding=UTF-8".into(), "-Djava.awt.headless=true".into()]);
    options.extend(given);
    options
}

fn class_options(jars: &Path) -> Vec<OsString> {
    let opens = OPENED.iter().map(|package| format!("--add-opens=java.base/{package}=ALL-UNNAMED").into());
    let mut options: Vec<OsString> = opens.collect();
    options.extend(["-cp".into(), jars::class_path(jars), "nextflow.cli.Launcher".into()]);
    options
}

fn environment(request: &Request, store: &Store) -> Vec<(OsString, OsString)> {
    let mut variables: Vec<(OsString, OsString)> = vec![
        ("NXF_OFFLINE".into(), "true".into()),
        ("NXF_DISABLE_CHECK_LATEST".into(), "true".into()),
        ("NXF_DEFAULT_DSL".into(), "2".into()),
        // The plugins that a site wants in every run are not here, and nothing of ours needs one.
        ("NXF_PLUGINS_DEFAULT".into(), "false".into()),
        // Set, it would ask for one.
        ("TOWER_ACCESS_TOKEN".into(), "".into()),
    ];
    // Nextflow writes there; where nobody may, it takes the home directory.
    if store.is_writable() {
        variables.push(("NXF_HOME".into(), store.home().into()));
    } else if !home_is_writable(request) {
        let own = format!("scfoundry-nextflow-{}", rustix::process::getuid().as_raw());
        variables.push(("NXF_HOME".into(), std::env::temp_dir().join(own).into()));
    }
    variables.extend(request.unicode_locale());
    variables
}

fn home_is_writable(request: &Request) -> bool {
    let home = request.variable("HOME").map(std::path::Path::new);
    home.is_some_and(|home| rustix::fs::access(home, rustix::fs::Access::WRITE_OK).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(variables: &[(&str, &Path)]) -> Request {
        let variables = variables.iter().map(|(name, value)| ((*name).into(), value.as_os_str().to_owned()));
        Request::new(None, None, variables)
    }

    fn java(major: u32) -> Java {
        Java { path: "/opt/java/bin/java".into(), version: format!("{major}.0.1"), major }
    }

    #[test]
    fn without_engine_java_and_tools_there_is_one_error_with_a_line_to_type() {
        let cache = tempfile::tempdir().unwrap();
        let request = request(&[("SCFOUNDRY_CACHE", cache.path()), ("PATH", Path::new("/nowhere"))]);
        let error = engine(&request, &Ui { quiet: true, ..Ui::default() }).unwrap_err();
        assert_eq!(error.kind.exit_code(), 4);
        assert!(error.message.contains("Nextflow is missing") && error.message.contains("mvn"), "{error}");
        assert!(error.hints[0].contains("apt-get install maven"), "{error:?}");
        assert_eq!(std::fs::read_dir(cache.path()).unwrap().count(), 0, "nothing is left behind");
        let inspection = inspect(&request);
        assert_eq!(inspection.problem.unwrap().message, error.message);
        assert_eq!(inspection.missing.len(), 2);
    }

    #[test]
    fn without_home_the_cache_has_no_place() {
        let error = engine(&request(&[]), &Ui { quiet: true, ..Ui::default() }).unwrap_err();
        assert_eq!(error.kind.exit_code(), 4);
        assert!(error.hints[0].contains("SCFOUNDRY_CACHE"));
    }

    #[test]
    fn the_users_java_options_count() {
        let text = |options: Vec<OsString>| {
            options.iter().map(|option| option.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
        };
        let plain = text(java_options(&request(&[]), &java(17)));
        assert!(plain.contains("-XX:+UseSerialGC") && !plain.contains("native-access"), "{plain}");
        let own = request(&[("NXF_OPTS", Path::new("-Xmx4g  -XX:+UseG1GC"))]);
        let own = text(java_options(&own, &java(25)));
        assert!(own.ends_with("-Xmx4g -XX:+UseG1GC") && !own.contains("Serial"), "{own}");
        assert!(own.contains("--enable-native-access=ALL-UNNAMED"), "{own}");
    }

    #[test]
    fn the_class_path_is_written_out_in_order() {
        let options = class_options(Path::new("/cache/two words"));
        let path = options[options.len() - 2].to_string_lossy().into_owned();
        let jars: Vec<&str> = path.split(':').collect();
        assert_eq!(jars.len(), 54);
        assert!(jars.is_sorted() && jars.iter().all(|jar| jar.starts_with("/cache/two words/")));
        assert_eq!(
            options.iter().filter(|option| option.to_string_lossy().starts_with("--add-opens")).count(),
            17
        );
    }
}
