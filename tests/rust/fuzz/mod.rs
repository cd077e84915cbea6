//! The fuzz targets on stable: the seeds of the fuzzers, and random changes of them.

mod targets;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use onefold::learners::LearnerSpec;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{RngSeed, TestRunner};

use crate::every_learner::every_spec;
use crate::sets::Set;

fn directory(target: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    root.join("tests/rust/fuzz/seeds").join(target)
}

/// The names and contents of the seeds of a target.
fn seeds(target: &str) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(directory(target)).expect("seeds");
    let seed = |path: PathBuf| {
        let name = path.file_name().expect("a name").to_string_lossy().into();
        (name, fs::read(path).expect("a file"))
    };
    let mut seeds: Vec<_> = entries
        .map(|entry| seed(entry.expect("an entry").path()))
        .collect();
    seeds.sort();
    seeds
}

/// A change of some bytes.
#[derive(Clone, Debug)]
enum Mutation {
    Replace(Index, u8),
    Flip(Index, u8),
    Insert(Index, Vec<u8>),
    Remove(Index, usize),
    /// Copies bytes to another place.
    Copy(Index, Index, usize),
}

impl Mutation {
    fn apply(self, bytes: &mut Vec<u8>) {
        if bytes.is_empty() {
            bytes.push(0);
        }
        let n = bytes.len();
        match self {
            Self::Replace(at, byte) => bytes[at.index(n)] = byte,
            Self::Flip(at, bit) => bytes[at.index(n)] ^= 1 << bit,
            Self::Insert(at, new) => {
                let at = at.index(n);
                bytes.splice(at..at, new);
            }
            Self::Remove(at, len) => {
                let at = at.index(n);
                bytes.drain(at..n.min(at + len));
            }
            Self::Copy(from, to, len) => {
                let (from, to) = (from.index(n), to.index(n));
                let copied = bytes[from..n.min(from + len)].to_vec();
                bytes.splice(to..to, copied);
            }
        }
    }
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let at = any::<Index>;
    let interesting = prop::sample::select(vec![0, 1, 2, 3, 0x7f, 0x80, 0xff, b':', b'\n', b' ']);
    prop_oneof![
        (at(), any::<u8>()).prop_map(|(at, byte)| Mutation::Replace(at, byte)),
        (at(), interesting).prop_map(|(at, byte)| Mutation::Replace(at, byte)),
        (at(), 0..8_u8).prop_map(|(at, bit)| Mutation::Flip(at, bit)),
        (at(), prop::collection::vec(any::<u8>(), 1..9))
            .prop_map(|(at, new)| Mutation::Insert(at, new)),
        (at(), 1..9_usize).prop_map(|(at, len)| Mutation::Remove(at, len)),
        (at(), at(), 1..33_usize).prop_map(|(from, to, len)| Mutation::Copy(from, to, len)),
    ]
}

/// Calls a target with all its seeds, and with seeds of which a few bytes are changed.
fn replay(name: &str, target: fn(&[u8])) {
    let seeds: Vec<Vec<u8>> = seeds(name).into_iter().map(|(_, bytes)| bytes).collect();
    assert!(seeds.len() >= 10, "{name} has {} seeds", seeds.len());
    for seed in &seeds {
        target(seed);
    }
    let mutated = (
        prop::sample::select(seeds),
        prop::collection::vec(mutation(), 1..5),
    );
    let run = |(mut bytes, mutations): (Vec<u8>, Vec<Mutation>)| {
        for mutation in mutations {
            mutation.apply(&mut bytes);
        }
        target(&bytes);
        Ok(())
    };
    let end = Instant::now() + Duration::from_secs(fuzz_seconds());
    for round in 1.. {
        let mut runner = TestRunner::new(ProptestConfig {
            cases: 5000,
            rng_seed: RngSeed::Fixed(round),
            failure_persistence: None,
            ..ProptestConfig::default()
        });
        runner
            .run(&mutated, run)
            .unwrap_or_else(|error| panic!("round {round}: {error}"));
        if Instant::now() >= end {
            break;
        }
    }
}

/// How long random changes are tried: `make fuzz` on stable says so, otherwise it is one round.
fn fuzz_seconds() -> u64 {
    let seconds = std::env::var("FUZZ_SECONDS").ok();
    seconds.and_then(|text| text.parse().ok()).unwrap_or(0)
}

#[test]
fn changed_files_are_read_or_refused() {
    replay("libsvm", targets::libsvm);
}

#[test]
fn changed_states_are_restored_or_refused() {
    replay("learner_state", targets::learner_state);
}

/// Every learner after a few rows, as it is saved.
fn saved_learners() -> Vec<(String, Vec<u8>)> {
    let set = Set::counts(5, 12, 3, 3);
    let save =
        |(number, (spec, targets)): (usize, (LearnerSpec, crate::every_learner::Targets))| {
            let [data, _] = targets.of(&set);
            let mut learner = spec.build().expect("valid");
            let rows: Vec<usize> = (0..12).collect();
            learner.update(&data, &rows, None).expect("updated");
            let name = format!("{number:02}_{}", spec.name);
            let saved = (spec, learner.state().to_vec());
            (name, postcard::to_stdvec(&saved).expect("encoded"))
        };
    every_spec(3).into_iter().enumerate().map(save).collect()
}

/// A change of a learner's parameters or state needs new seeds: see `write_learner_seeds`.
#[test]
fn the_seeds_are_the_states_of_every_learner() {
    let restored = |(name, bytes): (String, Vec<u8>)| {
        let (spec, state): (LearnerSpec, Vec<f64>) = postcard::from_bytes(&bytes).expect("a seed");
        spec.restore(&state)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        (name, spec, state.len())
    };
    // The others were found by fuzzing.
    let is_numbered = |(name, _): &(String, _)| name.starts_with(|c: char| c.is_ascii_digit());
    let found = seeds("learner_state").into_iter().filter(is_numbered);
    let found: Vec<_> = found.map(restored).collect();
    let expected: Vec<_> = saved_learners().into_iter().map(restored).collect();
    assert_eq!(found, expected);
}

/// Writes the seeds of saved learners: `cargo test --test rust write_learner_seeds -- --ignored`.
#[test]
#[ignore = "writes files of the repository"]
fn write_learner_seeds() {
    let directory = directory("learner_state");
    for (name, bytes) in saved_learners() {
        fs::write(directory.join(name), bytes).expect("written");
    }
}

#[test]
fn sizes_of_any_kind_are_refused_before_memory_is_used() {
    for (spec, _) in every_spec(3) {
        let state = spec.build().expect("valid").state().to_vec();
        let restore = |n_features, n_targets, n_values: usize| {
            let spec = LearnerSpec {
                n_features,
                n_targets,
                ..spec.clone()
            };
            spec.restore(&vec![0.5; n_values]).map(|_| ())
        };
        let n = state.len();
        assert!(restore(3, spec.n_targets, n).is_ok(), "{spec:?}");
        assert!(restore(3, spec.n_targets, n - 1).is_err(), "{spec:?}");
        assert!(restore(3, spec.n_targets, n + 1).is_err(), "{spec:?}");
        assert!(restore(0, spec.n_targets, 0).is_err(), "{spec:?}");
        let has_own_sizes = spec.name == "histogram_density";
        for huge in [1 << 20, 1 << 40, usize::MAX] {
            let refused = restore(huge, spec.n_targets, n).is_err();
            assert!(refused || has_own_sizes, "{spec:?}");
            let _ = restore(3, huge, n);
            let _ = restore(huge, huge, n);
        }
    }
}
