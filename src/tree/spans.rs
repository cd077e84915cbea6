//! TreeCV on examples that no cache holds.
//!
//! Every level of the tree reads all rows, and memory is the slowest part of the machine; two threads
//! share it. So the walk goes from span to span of the rows, and what has to be done with a span is
//! done when it comes there: where rows are fed in a fixed order, the models of later nodes that have
//! to learn the span wait until then, and learn it together ([`Visits`]).
//!
//! Where folds are runs of rows, rows are read in a row; where folds were shuffled, every row of every
//! level comes from somewhere else. Then the rows of a larger span are copied into the order of its
//! folds: that costs as much as one level, and the models that wait and all levels below read the
//! copy, again span by span ([`Copies`]). Spans take turns in the same memory, since fresh memory may cost
//! more than anything that is done in it.
//!
//! The result is the same to the last bit.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::feeder::CACHE;
use super::learner::Learner;
use super::narrow::Narrow;
use super::pool::Workspace;
use super::recursion::{self, Below, Node, Tree};
use super::{Options, Outcome};
use crate::data::{Examples, Gathered, Layout};
use crate::{Folds, Monitor, Result};

/// How often a copy must be read to pay: once a level of the tree, by the evaluation, and by every
/// model that waits for the rows.
const FEWEST_READINGS: usize = 3;

/// Stored values that are copied at most: 64 MB. The more rows are copied at a time, the fewer models
/// have to learn rows where they stand.
const LARGEST: f64 = (1 << 23) as f64;

/// Stored values that some cache may hold: 32 MB.
const HELD: f64 = (1 << 22) as f64;

/// Stored values of rows that stay in the last cache while something is done with them: 8 MB.
const NEAREST: f64 = (1 << 20) as f64;

/// [`cross_validate`](super::cross_validate) for examples in memory, with the same result. Rows are
/// read from memory as seldom as can be; where folds are scattered, spans of them are copied into the
/// order of the folds; features that no row stores are left out if the learner does not mind.
pub fn cross_validate_examples<R, L>(
    learner: &L,
    examples: &Examples<'_, R>,
    folds: &Folds,
    options: &Options,
    monitor: &Monitor,
) -> Result<Outcome>
where
    R: Layout,
    L: for<'s> Learner<Examples<'s, R::View<'s>>>,
{
    super::check_samples(examples, folds)?;
    let narrow = Narrow::new(learner, examples);
    let (learner, features) = Narrow::parts(narrow.as_ref(), learner);
    let examples = examples.with_features(features);
    let copies = Copies::new(&examples, folds, LARGEST, NEAREST);
    let is_far = examples.rows().n_stored() as f64 > HELD;
    let visits = is_far.then(|| Visits::new(&examples, NEAREST));
    let ways = (copies.as_ref(), visits.as_ref());
    run(learner, &examples, folds, options, monitor, ways)
}

fn run<'e, R, L>(
    learner: &L,
    examples: &Examples<'e, R>,
    folds: &Folds,
    options: &Options,
    monitor: &Monitor,
    (copies, visits): (Option<&Copies<R::Store>>, Option<&Visits>),
) -> Result<Outcome>
where
    R: Layout,
    L: Learner<Examples<'e, R>> + for<'s> Learner<Examples<'s, R::View<'s>>>,
{
    let visits = visits.map(|visits| visits as &dyn Below<_, _>);
    let below = copies.map(|copies| copies as &dyn Below<_, _>).or(visits);
    let (outputs, cost) = recursion::run(learner, examples, folds, options, monitor, below)?;
    Outcome::new(outputs, learner, folds, cost)
}

/// Copies of the rows of spans.
struct Copies<S> {
    /// Those that no span uses at the moment.
    idle: Mutex<Vec<Gathered<S>>>,
    /// 0, 1, 2… as many as a copy may have rows.
    rows: Vec<usize>,
    /// Visits within a copy.
    visits: Visits,
}

impl<S: Default> Copies<S> {
    /// `None` if the rows fit the first caches or are not scattered, so that nothing is to be
    /// gained.
    fn new<R: Layout<Store = S>>(
        examples: &Examples<'_, R>,
        folds: &Folds,
        largest: f64,
        span: f64,
    ) -> Option<Self> {
        if examples.rows().n_stored() as f64 <= CACHE || !are_scattered(folds.rows(0..folds.len()))
        {
            return None;
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // positive, saturating
        let most = (largest / examples.stored_per_row().max(1.0)) as usize;
        Some(Self {
            idle: Mutex::default(),
            rows: (0..most.min(folds.n_samples())).collect(),
            visits: Visits::new(examples, span),
        })
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Gathered<S>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<'e, R, L> Below<Examples<'e, R>, L> for Copies<R::Store>
where
    R: Layout,
    L: Learner<Examples<'e, R>> + for<'s> Learner<Examples<'s, R::View<'s>>>,
{
    fn is_for(&self, n_rows: usize, n_folds: usize, n_waiting: usize) -> bool {
        let n_levels = n_folds.next_power_of_two().ilog2() as usize;
        n_rows <= self.rows.len() && n_levels + 1 + n_waiting >= FEWEST_READINGS
    }

    fn descend(
        &self,
        tree: &Tree<'_, Examples<'e, R>, L>,
        model: &mut L,
        node: Node<'_>,
        workspace: &mut Workspace<L>,
    ) -> Result<()> {
        let mut copy = self.idle().pop().unwrap_or_default();
        {
            let rows = tree.rows(node.span.clone());
            let gathered = tree.data().gather(rows, &mut copy);
            let (span, places) = (node.span.clone(), &self.rows[..rows.len()]);
            let tree = tree.within(span, &gathered, places, Some(&self.visits));
            tree.teach_and_descend(model, node, workspace)?;
        }
        self.idle().push(copy);
        Ok(())
    }
}

/// Visits to spans of rows where they lie.
struct Visits {
    /// How many rows a span has at most.
    n_rows: usize,
}

impl Visits {
    /// Spans of so many stored values.
    fn new<R: Layout>(examples: &Examples<'_, R>, span: f64) -> Self {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // positive, saturating
        let n_rows = (span / examples.stored_per_row().max(1.0)) as usize;
        Self { n_rows }
    }
}

impl<'e, R, L> Below<Examples<'e, R>, L> for Visits
where
    R: Layout,
    L: Learner<Examples<'e, R>>,
{
    fn is_for(&self, n_rows: usize, _: usize, _: usize) -> bool {
        n_rows <= self.n_rows
    }

    fn descend(
        &self,
        tree: &Tree<'_, Examples<'e, R>, L>,
        model: &mut L,
        node: Node<'_>,
        workspace: &mut Workspace<L>,
    ) -> Result<()> {
        let rows = tree.rows(node.span.clone());
        let tree = tree.within(node.span.clone(), tree.data(), rows, None);
        tree.teach_and_descend(model, node, workspace)
    }
}

/// Steps between neighbours that are looked at.
const LOOKS: usize = 64;

/// The longest step that memory is read ahead for.
const NEAR: usize = 2;

/// A guess from some of the rows: whether most of them do not stand shortly after the one before.
/// Folds that are runs of rows, and stratified folds of rows in any order, are not scattered;
/// shuffled ones are.
fn are_scattered(rows: &[usize]) -> bool {
    let stride = (rows.len() / LOOKS).max(1);
    let mut steps = 0;
    let mut far = 0;
    for pair in rows.windows(2).step_by(stride) {
        steps += 1;
        far += usize::from(!(pair[0]..=pair[0] + NEAR).contains(&pair[1]));
    }
    2 * far > steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Dense;
    use crate::learners::{Pegasos, PegasosOptions};
    use crate::tree::{Order, Strategy};

    /// Copies of the whole, of spans of several sizes, of none, and visits instead: the same bits,
    /// and the same cost.
    #[test]
    fn the_size_of_spans_changes_no_bit() {
        let (n, d) = (2000, 20);
        let values: Vec<f64> = (0..n * d).map(|i| ((i * i) as f64).sin()).collect();
        let codes: Vec<u32> = (0..n).map(|i| u32::from(values[i * d] > 0.1)).collect();
        let examples = Dense::new(&values, n, d).and_then(|x| Examples::classified(x, &codes, 2));
        let examples = examples.expect("valid");
        let rule = PegasosOptions {
            alpha: 0.1,
            project: false,
            intercept: true,
        };
        let learner = Pegasos::new(rule, d, 2).expect("valid");
        let alone = rayon::ThreadPoolBuilder::new().num_threads(1).build();
        let alone = alone.expect("a thread");
        let orders = [Order::Fixed, Order::Random { seed: 3 }];
        let strategies = [Strategy::Auto, Strategy::Copy, Strategy::Revert];
        for (k, order, strategy) in [5, 10, 64, n]
            .into_iter()
            .flat_map(|k| orders.map(|order| (k, order)))
            .flat_map(|(k, order)| strategies.map(|strategy| (k, order, strategy)))
        {
            let labels: Vec<usize> = (0..n).map(|row| row * 1237 % n % k).collect();
            let folds = Folds::from_labels(&labels, k).expect("valid");
            let options = Options { strategy, order };
            let outcome = |copies: Option<&Copies<_>>, visits: Option<&Visits>| {
                let monitor = Monitor::new();
                let ways = (copies, visits);
                run(&learner, &examples, &folds, &options, &monitor, ways).expect("valid")
            };
            let plain = outcome(None, None);
            for span in [1e6, 15_000.0, 3_000.0, 100.0, 1.0] {
                let visits = Some(Visits::new(&examples, span));
                assert_eq!(
                    outcome(None, visits.as_ref()),
                    plain,
                    "{k} folds, {options:?}"
                );
                let alone = alone.install(|| outcome(None, visits.as_ref()));
                assert_eq!(alone.outputs, plain.outputs, "{k} folds, {options:?}");
            }
            for largest in [1e6, 15_000.0, 5_000.0, 3_000.0, 1.0] {
                let copies = Copies::new(&examples, &folds, largest, largest / 3.0);
                let copies = copies.expect("scattered");
                assert_eq!(
                    outcome(Some(&copies), None),
                    plain,
                    "{k} folds, {options:?}"
                );
                // On one thread no node forks, and more models wait for their rows.
                let alone = alone.install(|| outcome(Some(&copies), None));
                assert_eq!(alone.outputs, plain.outputs, "{k} folds, {options:?}");
                if k >= 64 {
                    let made = copies.idle().len();
                    assert_eq!(made, usize::from(largest > 1.0), "{largest}");
                }
            }
        }
    }

    /// Rows enough for nodes to fork while models wait.
    #[test]
    fn forks_within_visits_change_no_bit() {
        let (n, d) = (8000, 20);
        let values: Vec<f64> = (0..n * d).map(|i| ((i * i) as f64).sin()).collect();
        let codes: Vec<u32> = (0..n).map(|i| u32::from(values[i * d] > 0.1)).collect();
        let examples = Dense::new(&values, n, d).and_then(|x| Examples::classified(x, &codes, 2));
        let examples = examples.expect("valid");
        let rule = PegasosOptions {
            alpha: 0.1,
            project: false,
            intercept: true,
        };
        let learner = Pegasos::new(rule, d, 2).expect("valid");
        let folds = Folds::contiguous(n, 50).expect("valid");
        let outcome = |visits: Option<&Visits>| {
            let (options, monitor) = (Options::default(), Monitor::new());
            run(
                &learner,
                &examples,
                &folds,
                &options,
                &monitor,
                (None, visits),
            )
            .expect("valid")
        };
        let plain = outcome(None);
        for n_threads in [2, 5] {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(n_threads)
                .build();
            let pool = pool.expect("threads");
            for span in [50_000.0, 3_000.0] {
                let visits = Visits::new(&examples, span);
                let found = pool.install(|| outcome(Some(&visits)));
                assert_eq!(found.outputs, plain.outputs);
                assert_eq!(found.cost.rows_fed, plain.cost.rows_fed);
            }
        }
    }

    #[test]
    fn shuffled_rows_are_scattered_and_stratified_ones_are_not() {
        let runs: Vec<usize> = (0..1000).collect();
        let fifth: Vec<usize> = (0..10_000).filter(|i| i * i % 10_007 < 2_000).collect();
        let two_classes: Vec<usize> = (0..500).chain(9000..9500).collect();
        let strewn: Vec<usize> = (0..1000).map(|i| i * 7919 % 10_007).collect();
        assert!(!are_scattered(&[]) && !are_scattered(&[5]));
        assert!(!are_scattered(&runs) && !are_scattered(&two_classes));
        assert!(are_scattered(&strewn) && are_scattered(&fifth));
    }
}
