//! Parameters from measurements: least squares of relative errors, no parameter below zero.

/// One measurement: how often each parameter, and what all of it took.
#[derive(Debug, Clone, PartialEq)]
pub struct FitObservation {
    /// Times, in the order of the parameters.
    pub times: Vec<f64>,
    /// Nanoseconds.
    pub taken: f64,
}

/// Rounds in which measurements with a large error lose weight.
const HEARINGS: usize = 6;

/// A relative error from which on a measurement is heard less: it was disturbed, or is something
/// that the parameters cannot say.
const MUCH: f64 = 0.1;

/// Number of improvements of each parameter in a round.
const STEPS: usize = 3000;

/// Parameters that nothing tells apart share what they cost: each is drawn a little to zero. In
/// squares of relative errors, if the parameter were as large as all of a measurement.
const PULL: f64 = 1e-5;

/// Returns the parameters that fit best.
///
/// # Panics
/// If rows differ in length.
pub fn fit(rows: &[FitObservation]) -> Vec<f64> {
    let rows: Vec<&FitObservation> = rows.iter().filter(|row| row.taken > 0.0).collect();
    let count = rows.first().map_or(0, |row| row.times.len());
    let mut parameters = vec![0.0; count];
    let mut weights = vec![1.0; rows.len()];
    for _ in 0..HEARINGS {
        let problem = NormalEquations::new(&rows, &weights, count);
        problem.improve(&mut parameters);
        for (weight, row) in weights.iter_mut().zip(&rows) {
            let error = (price(&row.times, &parameters) - row.taken).abs() / row.taken;
            *weight = (MUCH / error.max(MUCH)).sqrt();
        }
    }
    parameters
}

/// Returns the time that a measurement should have taken.
pub fn price(times: &[f64], parameters: &[f64]) -> f64 {
    let parts = times.iter().zip(parameters);
    parts.map(|(times, each)| times * each).sum()
}

/// The normal equations of observations, with the times divided by the time taken.
struct NormalEquations {
    squares: Vec<Vec<f64>>,
    aims: Vec<f64>,
}

impl NormalEquations {
    fn new(rows: &[&FitObservation], weights: &[f64], count: usize) -> Self {
        let mut squares = vec![vec![0.0; count]; count];
        let mut aims = vec![0.0; count];
        for (row, weight) in rows.iter().zip(weights) {
            let shares = row.times.iter().map(|times| times / row.taken * weight);
            let shares: Vec<f64> = shares.collect();
            for ((line, aim), one) in squares.iter_mut().zip(&mut aims).zip(&shares) {
                *aim += one * weight;
                for (square, other) in line.iter_mut().zip(&shares) {
                    *square += one * other;
                }
            }
        }
        Self { squares, aims }
    }

    /// Moves one parameter after the other to where it fits best while the others stay.
    fn improve(&self, parameters: &mut [f64]) {
        for _ in 0..STEPS {
            for at in 0..parameters.len() {
                let square = self.squares[at][at];
                if square > 0.0 {
                    let others = price(&self.squares[at], parameters) - square * parameters[at];
                    let best = (self.aims[at] - others) / (square * (1.0 + PULL));
                    parameters[at] = best.max(0.0);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(of: &[(&[f64], f64)]) -> Vec<FitObservation> {
        let row = |(times, taken): &(&[f64], f64)| FitObservation {
            times: times.to_vec(),
            taken: *taken,
        };
        of.iter().map(row).collect()
    }

    fn assert_near(found: &[f64], expected: &[f64]) {
        let is_near = |(a, b): (&f64, &f64)| (a - b).abs() < 0.02 * b.max(1.0);
        assert!(
            found.iter().zip(expected).all(is_near),
            "{found:?} and not {expected:?}"
        );
    }

    #[test]
    fn what_is_a_sum_is_found_again() {
        let rows = rows(&[
            (&[1.0, 0.0, 0.0], 5.0),
            (&[1.0, 2.0, 0.0], 11.0),
            (&[1.0, 0.0, 1000.0], 105.0),
            (&[1.0, 1.0, 10.0], 9.0),
        ]);
        assert_near(&fit(&rows), &[5.0, 3.0, 0.1]);
    }

    #[test]
    fn no_parameter_is_negative() {
        let rows = rows(&[(&[1.0, 0.0], 5.0), (&[1.0, 1.0], 4.0), (&[1.0, 2.0], 3.5)]);
        let found = fit(&rows);
        assert_eq!(found[1], 0.0);
        assert!((3.5..=5.0).contains(&found[0]));
    }

    #[test]
    fn one_that_was_disturbed_is_hardly_heard() {
        let mut all = rows(&[(&[1.0, 0.0], 5.0), (&[1.0, 1.0], 90.0)]);
        all.extend((2..10).map(|n| FitObservation {
            times: vec![1.0, n as f64],
            taken: 5.0 + 3.0 * n as f64,
        }));
        let found = fit(&all);
        assert!(
            (found[0] - 5.0).abs() < 0.5 && (found[1] - 3.0).abs() < 0.3,
            "{found:?}"
        );
    }

    #[test]
    fn what_nothing_tells_apart_is_shared_and_nothing_is_invented() {
        let rows = rows(&[(&[1.0, 1.0, 0.0], 4.0), (&[2.0, 2.0, 0.0], 8.0)]);
        let found = fit(&rows);
        assert!((found[0] + found[1] - 4.0).abs() < 0.1, "{found:?}");
        assert_eq!(found[2], 0.0);
        assert_eq!(fit(&[]), Vec::<f64>::new());
    }
}
