//! Trees and forests against a textbook tree: scikit-learn's algorithm as it is written there, which sorts
//! the samples of every node by every feature that it draws.

// Values become float32 as in scikit-learn; rows and shares are small.
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]

use ndarray::{Array1, Array2};
use onefold::forest::{
    Bootstrap, Forest, Forests, Impurity, Pruning, SampleCount, Splitter, Stop, TreeOptions,
};
use onefold::{Dataset, Engine as _, Folds, Job, Monitor, Splits};

/// `numpy.random.RandomState(seed)`.
struct RandomState {
    words: Vec<u32>,
    used: usize,
}

impl RandomState {
    fn new(seed: u32) -> Self {
        let mut words = vec![seed];
        for i in 1..624_u32 {
            let last = words[i as usize - 1];
            words.push(
                (last ^ (last >> 30))
                    .wrapping_mul(1_812_433_253)
                    .wrapping_add(i),
            );
        }
        Self { words, used: 624 }
    }

    fn below(&mut self, bound: u32) -> u32 {
        let mask = (bound - 1)
            .checked_ilog2()
            .map_or(0, |bits| u32::MAX >> (31 - bits));
        if mask == 0 {
            return 0;
        }
        loop {
            if self.used == 624 {
                for k in 0..624 {
                    let next = self.words[(k + 1) % 624];
                    let y = (self.words[k] & (1 << 31)) | (next & !(1 << 31));
                    self.words[k] =
                        self.words[(k + 397) % 624] ^ (y >> 1) ^ ((y & 1) * 0x9908_b0df);
                }
                self.used = 0;
            }
            let mut y = self.words[self.used];
            self.used += 1;
            y ^= y >> 11;
            y ^= (y << 7) & 0x9d2c_5680;
            y ^= (y << 15) & 0xefc6_0000;
            y ^= y >> 18;
            if y & mask < bound {
                return y & mask;
            }
        }
    }
}

/// What a tree is grown from.
struct Table<'a> {
    x: &'a Array2<f64>,
    y: &'a [f64],
    n_classes: usize,
    options: TreeOptions,
}

/// A tree while it grows.
struct Textbook<'a> {
    table: &'a Table<'a>,
    state: u32,
    features: Vec<usize>,
    constants: Vec<usize>,
    min_samples_leaf: usize,
    min_samples_split: usize,
    min_weight_leaf: f64,
    total: f64,
}

/// A row of the training set and its weight.
type Sample = (usize, f64);

/// A node, what it predicts as a leaf, its weighted impurity, and its split.
struct Node {
    prediction: Vec<f64>,
    cost: f64,
    split: Option<(usize, f64, Box<[Node; 2]>)>,
}

impl Node {
    /// Σ of the weighted impurities of its leaves, and how many there are.
    fn leaves(&self) -> (f64, usize) {
        match &self.split {
            None => (self.cost, 1),
            Some((_, _, children)) => {
                let [(left, m), (right, n)] = [children[0].leaves(), children[1].leaves()];
                (left + right, m + n)
            }
        }
    }

    /// The cost of a leaf saved by making this node or one below it a leaf, at its least.
    fn weakest_link(&self) -> Option<f64> {
        let (_, _, children) = self.split.as_ref()?;
        let (cost, n_leaves) = self.leaves();
        let mut least = (self.cost - cost) / (n_leaves - 1) as f64;
        for below in children.iter().filter_map(Node::weakest_link) {
            least = least.min(below);
        }
        Some(least)
    }

    /// Makes the weakest links leaves, given their cost.
    fn cut(&mut self, alpha: f64) {
        let (cost, n_leaves) = self.leaves();
        if (self.cost - cost) / (n_leaves.max(2) - 1) as f64 <= alpha {
            self.split = None;
        }
        if let Some((_, _, children)) = &mut self.split {
            children.iter_mut().for_each(|child| child.cut(alpha));
        }
    }
}

impl Textbook<'_> {
    fn value(&self, row: usize, feature: usize) -> f32 {
        self.table.x[[row, feature]] as f32
    }

    /// Weights by class, or Σ wy and Σ wy².
    fn sums(&self, samples: &[Sample]) -> Vec<f64> {
        let classes = self.table.options.impurity != Impurity::SquaredError;
        let mut sums = vec![0.0; if classes { self.table.n_classes } else { 2 }];
        for &(row, weight) in samples {
            let y = self.table.y[row];
            if classes {
                sums[y as usize] += weight;
            } else {
                sums[0] += weight * y;
                sums[1] += weight * y * y;
            }
        }
        sums
    }

    fn impurity(&self, samples: &[Sample]) -> f64 {
        let (sums, weight) = (self.sums(samples), weight(samples));
        match self.table.options.impurity {
            Impurity::Gini => 1.0 - sums.iter().map(|n| n * n).sum::<f64>() / (weight * weight),
            Impurity::Entropy => {
                let shares = sums.iter().filter(|n| **n > 0.0).map(|n| n / weight);
                shares.fold(0.0, |sum, p| sum - p * (p.ln() / 2_f64.ln()))
            }
            Impurity::SquaredError => sums[1] / weight - (sums[0] / weight) * (sums[0] / weight),
        }
    }

    fn score(&self, left: &[Sample], right: &[Sample]) -> f64 {
        if self.table.options.impurity == Impurity::SquaredError {
            let part = |side| self.sums(side)[0] * self.sums(side)[0] / weight(side);
            return part(left) + part(right);
        }
        -weight(right) * self.impurity(right) - weight(left) * self.impurity(left)
    }

    fn random(&mut self) -> usize {
        if self.state == 0 {
            self.state = 1;
        }
        self.state ^= self.state << 13;
        self.state ^= self.state >> 17;
        self.state ^= self.state << 5;
        (self.state % (1 << 31)) as usize
    }

    /// The threshold that an extremely randomised tree draws.
    fn threshold(&mut self, low: f32, high: f32) -> Option<f64> {
        let [low, high] = [low, high].map(f64::from);
        (self.table.options.splitter == Splitter::Random).then(|| {
            let drawn = (high - low) * self.random() as f64 / f64::from(i32::MAX) + low;
            if drawn == high { low } else { drawn }
        })
    }

    fn grow(&mut self, samples: Vec<Sample>, depth: usize, impurity: f64, known: usize) -> Node {
        let (n, stop) = (samples.len(), self.table.options.stop);
        let mut prediction = self.sums(&samples);
        if self.table.options.impurity == Impurity::SquaredError {
            prediction.truncate(1);
        }
        let leaf = Node {
            prediction: prediction
                .iter()
                .map(|sum| sum / weight(&samples))
                .collect(),
            cost: weight(&samples) * impurity / self.total,
            split: None,
        };
        if depth >= stop.max_depth
            || n < self.min_samples_split
            || n < 2 * self.min_samples_leaf
            || weight(&samples) < 2.0 * self.min_weight_leaf
            || impurity <= f64::EPSILON
        {
            return leaf;
        }
        let mut end = self.features.len();
        let (mut visited, mut found, mut drawn) = (0, 0, 0);
        let mut best: Option<(f64, usize, f64)> = None;
        while end > known + found
            && (visited < self.table.options.max_features || visited <= found + drawn)
        {
            visited += 1;
            let mut j = drawn + self.random() % (end - found - drawn);
            if j < known {
                self.features.swap(drawn, j);
                drawn += 1;
                continue;
            }
            j += found;
            let feature = self.features[j];
            let mut sorted = samples.clone();
            sorted.sort_by(|a, b| {
                self.value(a.0, feature)
                    .total_cmp(&self.value(b.0, feature))
            });
            let values: Vec<f32> = sorted
                .iter()
                .map(|row| self.value(row.0, feature))
                .collect();
            let at = |position: usize| values[position];
            if at(n - 1) <= at(0) + 1e-7_f32 {
                self.features.swap(j, known + found);
                found += 1;
                continue;
            }
            end -= 1;
            self.features.swap(end, j);
            let drawn = self.threshold(at(0), at(n - 1));
            for p in 1..n {
                let (left, right) = sorted.split_at(p);
                let threshold =
                    drawn.unwrap_or(f64::from(at(p - 1)) / 2.0 + f64::from(at(p)) / 2.0);
                let is_boundary = match drawn {
                    None => at(p) > at(p - 1) + 1e-7_f32,
                    Some(drawn) => f64::from(at(p - 1)) <= drawn && f64::from(at(p)) > drawn,
                };
                let is_allowed = is_boundary
                    && left.len() >= self.min_samples_leaf
                    && right.len() >= self.min_samples_leaf
                    && weight(left) >= self.min_weight_leaf
                    && weight(right) >= self.min_weight_leaf;
                if is_allowed {
                    let score = self.score(left, right);
                    if best.is_none_or(|(known, ..)| score > known) {
                        best = Some((score, feature, threshold));
                    }
                }
            }
        }
        self.features[..known].copy_from_slice(&self.constants[..known]);
        let all = known + found;
        self.constants[known..all].copy_from_slice(&self.features[known..all]);
        let Some((_, feature, threshold)) = best else {
            return leaf;
        };
        let is_left = |sample: &Sample| f64::from(self.value(sample.0, feature)) <= threshold;
        let sides: (Vec<_>, Vec<_>) = samples.iter().copied().partition(is_left);
        let impurities = (self.impurity(&sides.0), self.impurity(&sides.1));
        let of_node = weight(&samples);
        let decrease = (of_node / self.total)
            * (impurity
                - weight(&sides.1) / of_node * impurities.1
                - weight(&sides.0) / of_node * impurities.0);
        if decrease + f64::EPSILON < stop.min_impurity_decrease {
            return leaf;
        }
        let left = self.grow(sides.0, depth + 1, impurities.0, all);
        let right = self.grow(sides.1, depth + 1, impurities.1, all);
        Node {
            split: Some((feature, threshold, Box::new([left, right]))),
            ..leaf
        }
    }
}

fn weight(samples: &[Sample]) -> f64 {
    samples.iter().map(|sample| sample.1).sum()
}

fn count(count: SampleCount, n: usize) -> usize {
    match count {
        SampleCount::Number(number) => number,
        SampleCount::Share(share) => (share * n as f64).ceil() as usize,
    }
}

/// One tree for a training set, as its prediction of the rows held out.
fn textbook(
    table: &Table<'_>,
    train: &[usize],
    weights: &[f64],
    seed: u32,
    test: &[usize],
) -> Vec<Vec<f64>> {
    let samples: Vec<Sample> = train
        .iter()
        .zip(weights)
        .filter(|(_, weight)| **weight != 0.0)
        .map(|(&row, &weight)| (row, weight))
        .collect();
    let (options, p) = (table.options, table.x.ncols());
    let total = weight(&samples);
    let min_samples_leaf = count(options.min_samples_leaf, train.len());
    let min_samples_split = count(options.stop.min_samples_split, train.len());
    let mut tree = Textbook {
        table,
        state: RandomState::new(seed).below(0x7fff_ffff),
        features: (0..p).collect(),
        constants: vec![0; p],
        min_samples_leaf,
        min_samples_split: min_samples_split.max(2).max(2 * min_samples_leaf),
        min_weight_leaf: options.min_weight_fraction_leaf * total,
        total,
    };
    let impurity = tree.impurity(&samples);
    let mut root = tree.grow(samples, 0, impurity, 0);
    if let Pruning::CostComplexity(alpha) = options.pruning {
        while let Some(weakest) = root.weakest_link().filter(|weakest| *weakest <= alpha) {
            root.cut(weakest);
        }
    }
    let predict = |&row: &usize| {
        let mut node = &root;
        loop {
            let Some((feature, threshold, children)) = &node.split else {
                return node.prediction.clone();
            };
            let value = f64::from(table.x[[row, *feature]] as f32);
            node = &children[usize::from(value > *threshold)];
        }
    };
    test.iter().map(predict).collect()
}

/// Rows with ties, constant columns, columns of two values, and neighbors that count as equal.
fn rows(n: usize, p: usize) -> Array2<f64> {
    Array2::from_shape_fn((n, p), |(i, j)| {
        let wave = ((i * i + 3 * i + 1) as f64 * (j + 2) as f64 * 0.37).sin();
        match j % 6 {
            0 => wave,
            1 => (4.0 * wave).round(),
            2 => f64::from(wave > 0.4),
            3 => 1.0 + 4e-8 * (9.0 * wave).round(),
            4 => 7.0,
            _ => (wave - 0.5).max(0.0),
        }
    })
}

fn every_options(n_features: usize) -> Vec<TreeOptions> {
    let tree = TreeOptions {
        max_features: n_features,
        ..TreeOptions::default()
    };
    let stop = |max_depth, min_samples_split, min_impurity_decrease| Stop {
        max_depth,
        min_samples_split,
        min_impurity_decrease,
    };
    let (two, share) = (SampleCount::Number(2), SampleCount::Share(0.2));
    vec![
        tree,
        TreeOptions {
            stop: stop(3, two, 0.0),
            ..tree
        },
        TreeOptions {
            stop: stop(5, share, 0.0),
            ..tree
        },
        TreeOptions {
            stop: stop(usize::MAX, two, 0.01),
            ..tree
        },
        TreeOptions {
            min_samples_leaf: SampleCount::Number(4),
            ..tree
        },
        TreeOptions {
            min_samples_leaf: SampleCount::Share(0.07),
            max_features: 3,
            ..tree
        },
        TreeOptions {
            min_weight_fraction_leaf: 0.05,
            ..tree
        },
        TreeOptions {
            max_features: 1,
            ..tree
        },
        TreeOptions {
            splitter: Splitter::Random,
            ..tree
        },
        TreeOptions {
            splitter: Splitter::Random,
            min_samples_leaf: SampleCount::Number(3),
            max_features: 2,
            ..tree
        },
        TreeOptions {
            pruning: Pruning::CostComplexity(0.013),
            ..tree
        },
        TreeOptions {
            pruning: Pruning::CostComplexity(0.031),
            stop: stop(7, two, 0.0),
            ..tree
        },
        TreeOptions {
            max_features: 4,
            stop: stop(4, two, 0.0),
            ..tree
        },
    ]
}

/// Every combination of criterion, options, folds, weights and bootstrap samples.
#[test]
fn outputs_are_those_of_textbook_trees() {
    let (n, p) = (90, 7);
    let x = rows(n, p);
    let codes = Array1::from_shape_fn(n, |i| u32::from(x[[i, 0]] > 0.1) + u32::from(i % 7 == 0));
    let binary = codes.mapv(|code| code.min(1));
    let values =
        Array2::from_shape_fn((n, 1), |(i, _)| (20.0 * x[[i, 0]]).round() + (i % 5) as f64);
    let weights = Array1::from_shape_fn(n, |i| (i % 4) as f64);
    let folds = Folds::shuffled(n, 4, 1).expect("valid");
    let pairs = vec![
        ((5..70).rev().collect(), (60..90).collect()),
        ((0..40).collect(), vec![1, 80]),
    ];
    let splits = Splits::new(n, pairs).expect("valid");
    // Sums of numbers beyond 32 bits are exact too, but the engine does not rely on it.
    for (n_classes, scale) in [(0, 1.0), (0, f64::from(1 << 30)), (2, 1.0), (3, 1.0)] {
        let values = values.mapv(|value| scale * value);
        let data = Dataset::dense(x.view()).expect("valid");
        let (data, y): (_, Vec<f64>) = match n_classes {
            0 => (
                data.with_values(values.view()),
                values.iter().copied().collect(),
            ),
            2 => (
                data.with_classes(binary.view(), 2),
                binary.iter().map(|&c| c.into()).collect(),
            ),
            _ => (
                data.with_classes(codes.view(), 3),
                codes.iter().map(|&c| c.into()).collect(),
            ),
        };
        let data = data.expect("valid");
        for is_weighted in [false, true] {
            let data = if is_weighted {
                data.with_weights(weights.view()).expect("valid")
            } else {
                data
            };
            for folds in [&folds as &dyn onefold::Resampling, &splits] {
                check(
                    &x,
                    &y,
                    n_classes,
                    data,
                    is_weighted.then_some(&weights),
                    folds,
                );
            }
        }
    }
}

/// Trees that follow that of all rows, and some that leave it.
#[test]
fn leave_one_out_is_that_of_textbook_trees() {
    let (n, p) = (40, 7);
    let x = rows(n, p);
    let codes = Array1::from_shape_fn(n, |i| u32::from(x[[i, 0]] > 0.1) + u32::from(i % 7 == 0));
    let y: Vec<f64> = codes.iter().map(|&code| code.into()).collect();
    let values = codes
        .mapv(|code| f64::from(3 * code))
        .insert_axis(ndarray::Axis(1));
    let data = Dataset::dense(x.view()).expect("valid");
    let folds = Folds::shuffled(n, n, 3).expect("valid");
    let classes = data.with_classes(codes.view(), 3).expect("valid");
    check(&x, &y, 3, classes, None, &folds);
    let integers = data.with_values(values.view()).expect("valid");
    let y: Vec<f64> = values.iter().copied().collect();
    check(&x, &y, 0, integers, None, &folds);
}

fn check(
    x: &Array2<f64>,
    y: &[f64],
    n_classes: usize,
    data: Dataset<'_>,
    weights: Option<&Array1<f64>>,
    folds: &dyn onefold::Resampling,
) {
    let impurities = match n_classes {
        0 => vec![Impurity::SquaredError],
        _ => vec![Impurity::Gini, Impurity::Entropy],
    };
    let training = |split| {
        let mut rows = folds.training(split).concat();
        if folds.partition().is_some() {
            rows.sort_unstable();
        }
        rows
    };
    let n_draws: Vec<usize> = (0..folds.n_splits())
        .map(|split| training(split).len() - 3)
        .collect();
    let mut candidates = vec![];
    for impurity in impurities {
        for options in every_options(x.ncols()) {
            let tree = TreeOptions {
                impurity,
                ..options
            };
            candidates.push(Forest {
                tree,
                seeds: vec![5],
                bootstrap: None,
            });
            if weights.is_none() && folds.n_splits() < 10 {
                for seeds in [vec![3, 8], vec![3, 8, 1]] {
                    let bootstrap = Some(Bootstrap {
                        seeds: seeds.iter().map(|seed| seed + 1).collect(),
                        n_draws: n_draws.clone(),
                    });
                    candidates.push(Forest {
                        tree,
                        seeds,
                        bootstrap,
                    });
                }
            }
        }
    }
    let monitor = Monitor::new();
    let candidates: Vec<&Forest> = candidates.iter().collect();
    let found = Forests::default()
        .out_of_fold(&candidates, &Job::new(&data, folds, &monitor))
        .expect("valid");
    for (candidate, found) in candidates.iter().zip(found) {
        let table = Table {
            x,
            y,
            n_classes,
            options: candidate.tree,
        };
        let mut expected: Vec<f64> = vec![];
        for split in 0..folds.n_splits() {
            let (train, test) = (training(split), folds.held_out(split));
            let mut sums = vec![vec![0.0; n_classes.max(1)]; test.len()];
            for &seed in &candidate.seeds {
                let mut own: Vec<f64> = train
                    .iter()
                    .map(|&row| weights.map_or(1.0, |w| w[row]))
                    .collect();
                if let Some(bootstrap) = &candidate.bootstrap {
                    own.fill(0.0);
                    let mut random = RandomState::new(seed + 1);
                    for _ in 0..bootstrap.n_draws[split] {
                        own[random.below(train.len() as u32) as usize] += 1.0;
                    }
                }
                for (sums, shares) in sums
                    .iter_mut()
                    .zip(textbook(&table, &train, &own, seed, test))
                {
                    sums.iter_mut()
                        .zip(shares)
                        .for_each(|(sum, share)| *sum += share);
                }
            }
            let n_trees = candidate.seeds.len() as f64;
            expected.extend(sums.iter().flatten().map(|sum| sum / n_trees));
        }
        let found: Vec<f64> = found.outputs.iter().copied().collect();
        assert_eq!(found, expected, "{candidate:?}");
    }
}

#[test]
fn more_than_65536_rows_and_any_number_of_threads() {
    let n = 66_000;
    let x = rows(n, 3);
    let y = Array1::from_shape_fn(n, |i| u32::from(x[[i, 0]] + 0.1 * x[[i, 1]] > 0.2));
    let data = Dataset::dense(x.view())
        .expect("valid")
        .with_classes(y.view(), 2)
        .expect("valid");
    let folds = Splits::new(
        n,
        vec![(
            (0..400).chain(65_600..66_000).collect(),
            (65_000..65_700).collect(),
        )],
    );
    let folds = folds.expect("valid");
    let tree = TreeOptions {
        max_features: 3,
        ..TreeOptions::default()
    };
    let forest = Forest {
        tree,
        seeds: vec![1, 2, 3],
        bootstrap: Some(Bootstrap {
            seeds: vec![1, 2, 3],
            n_draws: vec![800],
        }),
    };
    let outputs = |n_threads| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(n_threads)
            .build()
            .expect("started");
        pool.install(|| Forests::default().cross_validate(&forest, &data, &folds))
            .expect("valid")
            .outputs
    };
    let table = Table {
        x: &x,
        y: &y.iter().map(|&code| f64::from(code)).collect::<Vec<_>>(),
        n_classes: 2,
        options: tree,
    };
    let train = folds.train(0);
    let mut sums = vec![0.0; folds.test(0).len()];
    for seed in [1, 2, 3] {
        let mut own = vec![0.0; train.len()];
        let mut random = RandomState::new(seed);
        (0..800).for_each(|_| own[random.below(train.len() as u32) as usize] += 1.0);
        let shares = textbook(&table, train, &own, seed, folds.test(0));
        sums.iter_mut()
            .zip(shares)
            .for_each(|(sum, share)| *sum += share[1]);
    }
    let expected: Vec<f64> = sums.iter().map(|sum| sum / 3.0).collect();
    assert_eq!(outputs(1).column(1).to_vec(), expected);
    assert_eq!(outputs(1), outputs(4));
}

#[test]
fn what_is_not_exact_is_refused() {
    let x = rows(20, 2);
    let y = Array1::from_shape_fn(20, |i| u32::from(i > 9));
    let values = Array2::from_shape_fn((20, 1), |(i, _)| i as f64 * 1e160);
    let data = Dataset::dense(x.view()).expect("valid");
    let classes = data.with_classes(y.view(), 2).expect("valid");
    let folds = Folds::contiguous(20, 4).expect("valid");
    let tree = |impurity| Forest {
        tree: TreeOptions {
            impurity,
            ..TreeOptions::default()
        },
        seeds: vec![0],
        bootstrap: None,
    };
    let message = |forest: &Forest, data: &Dataset<'_>| {
        Forests::default()
            .cross_validate(forest, data, &folds)
            .expect_err("refused")
            .to_string()
    };
    let halves = Array1::from_elem(20, 0.5);
    let weighted = classes.with_weights(halves.view()).expect("valid");
    assert!(message(&tree(Impurity::Gini), &weighted).starts_with("weights must be whole"));
    let real = data.with_values(values.view()).expect("valid");
    assert!(
        message(&tree(Impurity::SquaredError), &real)
            .starts_with("y must be numbers whose squares")
    );
    assert!(message(&tree(Impurity::SquaredError), &classes).starts_with("criterion must be"));
    let none = Forest {
        seeds: vec![],
        ..tree(Impurity::Gini)
    };
    assert_eq!(
        message(&none, &classes),
        "n_estimators must be at least 1, got 0"
    );
    let few = Forest {
        bootstrap: Some(Bootstrap {
            seeds: vec![0],
            n_draws: vec![5; 3],
        }),
        ..tree(Impurity::Gini)
    };
    assert!(message(&few, &classes).contains("expected length 4, got 3"));
}
