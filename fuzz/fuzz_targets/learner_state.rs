//! Saved learners.

#![no_main]

#[allow(dead_code)] // the other target
#[path = "../../tests/rust/fuzz/targets.rs"]
mod targets;

libfuzzer_sys::fuzz_target!(|data: &[u8]| targets::learner_state(data));
