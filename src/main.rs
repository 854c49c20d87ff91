use std::process::ExitCode;

fn main() -> ExitCode {
    scfoundry::cli::main()
}
