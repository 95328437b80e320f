//! The target that `SVC_FUZZ_TARGET` names, guided by coverage.
#![no_main]

use std::sync::LazyLock;

use svc_fuzz::Target;

static TARGET: LazyLock<&'static Target> = LazyLock::new(|| {
    let name = std::env::var("SVC_FUZZ_TARGET").unwrap_or_default();
    svc_fuzz::target(&name).unwrap_or_else(|| panic!("SVC_FUZZ_TARGET names no target: `{name}`"))
});

libfuzzer_sys::fuzz_target!(|data: &[u8]| (TARGET.run)(data));
