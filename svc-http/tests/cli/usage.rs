use crate::{Ran, run};

/// A command line that is not understood is exit 2, with usage on standard error and nothing on standard output.
#[test]
fn what_is_not_understood_is_exit_2() {
    let folder = tempfile::tempdir().unwrap();
    for line in ["", "nonsense", "doctor --nonsense", "receipt", "receipt verify r.jws", "doctor --data"] {
        let Ran { code, out, err } = run(folder.path(), line);
        assert_eq!((code, out.as_str()), (2, ""), "{line}");
        assert!(err.contains("--help"), "{line}: {err}");
    }
}

/// Help and version are answers: exit 0, standard output.
#[test]
fn help_and_version_are_exit_0() {
    let folder = tempfile::tempdir().unwrap();
    let version = run(folder.path(), "--version");
    assert_eq!(version, Ran { code: 0, out: format!("svc {}\n", env!("CARGO_PKG_VERSION")), err: String::new() });
    let help = run(folder.path(), "--help");
    assert_eq!((help.code, help.err.as_str()), (0, ""));
    for command in ["doctor", "receipt"] {
        assert!(help.out.contains(&format!("\n  {command}")), "{command} in {}", help.out);
    }
}
